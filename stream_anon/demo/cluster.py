"""A broker, its topics and a worker, each a process of its own, for the time of a demo; ends what it started."""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from threading import Event
from types import TracebackType

from prometheus_client.parser import text_string_to_metric_families

from stream_anon.demo import policy_text
from stream_anon.errors import StreamAnonError
from stream_anon.kafka.clients.kafka_python.topics import create_topics
from stream_anon.kafka.local_broker.broker import LocalBroker, free_port

INPUT, OUTPUT, DEAD = "admissions", "admissions-anonymous", "admissions-dead"
NUMBER = "number"
"""A field that only the demo on Kafka has: published as it is, it shows the witness which record a line was made of."""

_PARTITIONS = 4
_PATIENCE = 120.0  # seconds for a worker to be ready: a first start compiles its kernels
_DRAIN = 30.0  # seconds for it to end, far beyond the 10 it needs


class DemoClusterError(StreamAnonError):
    """The worker did not start, or ended before it was asked to."""


class DemoCluster:
    """A context with a broker and a worker, which is `stream-anon run`, started and ended as a supervisor would."""

    def __init__(self, say: Callable[[str], None], stopped: Event) -> None:
        self._say, self._stopped = say, stopped
        self._folder = tempfile.TemporaryDirectory(prefix="stream-anon-demo-")
        self._log = Path(self._folder.name) / "worker.log"
        self._broker: LocalBroker | None = None
        self._worker: subprocess.Popen[bytes] | None = None
        self._status = free_port()

    @property
    def bootstrap(self) -> str:
        """The address of the broker."""
        assert self._broker is not None  # noqa: S101 - opened by `with`
        return self._broker.bootstrap

    @property
    def policy(self) -> Path:
        """The path of the demo's policy for Kafka."""
        return Path(self._folder.name) / "policy.yaml"

    @property
    def page(self) -> str:
        """The address of the worker's live page."""
        return f"http://127.0.0.1:{self._status}/"

    def __enter__(self) -> DemoCluster:
        try:
            self._say("starting Apache Kafka, a process of its own ...")
            self._broker = LocalBroker().start()
            topics = {INPUT: _PARTITIONS, OUTPUT: _PARTITIONS, DEAD: 1}
            create_topics(self.bootstrap, topics)
            self.policy.write_text(kafka_policy(self.bootstrap), encoding="utf-8")
            self._say(f"Kafka listens on {self.bootstrap}, with {', '.join(topics)}; starting a worker ...")
            self._start_worker()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the worker, then the broker, and delete what they wrote."""
        self.stop_worker()
        broker, self._broker = self._broker, None
        if broker is not None:
            broker.remove()
        self._folder.cleanup()

    def counts(self, metric: str) -> dict[str, int]:
        """Return a counter of the worker by the value of its one label."""
        text = self._get("/metrics")
        samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
        wanted = f"stream_anon_{metric}_total"
        return {next(iter(s.labels.values()), ""): int(s.value) for s in samples if s.name == wanted}

    def check_worker(self) -> None:
        """Raise if the worker has ended."""
        if self._worker is None or self._worker.poll() is not None:
            lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
            raise DemoClusterError(
                f"the worker ended by itself; the last line of its log: {lines[-1] if lines else 'none'}"
            )

    def stop_worker(self) -> int | None:
        """Ask the worker to drain and end; return its exit code, None if there was no worker."""
        worker, self._worker = self._worker, None
        if worker is None:
            return None
        worker.terminate()
        try:
            return worker.wait(_DRAIN)
        except subprocess.TimeoutExpired:
            worker.kill()
            return worker.wait()

    def _start_worker(self) -> None:
        command = [sys.executable, "-m", "stream_anon", "run", "-p", str(self.policy)]
        with self._log.open("wb") as log:
            self._worker = subprocess.Popen(  # noqa: S603 - our own command; Ctrl-C is for us, not for it
                [*command, "--status-port", str(self._status)], stdout=log, stderr=log, start_new_session=True
            )
        end = time.monotonic() + _PATIENCE
        while not self._ready() and not self._stopped.is_set():
            self.check_worker()
            if time.monotonic() > end:
                raise DemoClusterError(f"the worker was not ready within {_PATIENCE:.0f} s")
            time.sleep(0.1)

    def _ready(self) -> bool:
        try:
            return self._get("/readyz") == "ok\n"
        except urllib.error.URLError:
            return False

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._status}{path}", timeout=5) as answer:
            text: str = answer.read().decode()
            return text


def kafka_policy(bootstrap: str) -> str:
    """Return the demo's policy with a Kafka section and the witness's number."""
    topics = f"group: demo, input: {INPUT}, output: {OUTPUT}, dead_letter: {DEAD}"
    return (
        policy_text().replace("attributes:\n", f"attributes:\n  {NUMBER}: {{role: insensitive}}\n", 1)
        + f'secret: "{secrets.token_hex(16)}"\n'
        + f'kafka: {{bootstrap: "{bootstrap}", {topics}}}\n'
    )
