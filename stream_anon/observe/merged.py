"""The metrics and the health of several workers as one; each keeps its series, with a bounded `worker` label."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from stream_anon.observe.live.merge import Merger
from stream_anon.observe.live.status import Status

_PATIENCE = 3.0  # seconds for an answer over the loopback; a worker that hangs must not silence the others


class Workers(Collector):
    """A collector that asks the status ports of workers on this machine.

    Sums are left to whoever asks: a counter that starts again with its worker is understood as such only while it is a
    series of its own. `running` and `restarts` are what is known of the processes.
    """

    def __init__(
        self, ports: Sequence[int], running: Callable[[], Sequence[bool]], restarts: Callable[[], int]
    ) -> None:
        self._ports, self._running, self._restarts = ports, running, restarts
        self._pool = ThreadPoolExecutor(len(ports), "status")
        self._merger = Merger(len(ports))
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def describe(self) -> list[Metric]:
        """Return no metrics: nothing is known before the workers are asked."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all series of all workers that answer."""
        running = list(self._running())
        yield GaugeMetricFamily("stream_anon_workers_wanted", "Workers that should run", len(running))
        yield GaugeMetricFamily("stream_anon_workers_running", "Workers whose process runs", sum(running))
        yield CounterMetricFamily("stream_anon_worker_restarts", "Workers started again", self._restarts())
        merged: dict[str, Metric] = {}
        for number, text in enumerate(self._pool.map(self._metrics, self._ports)):
            for family in text_string_to_metric_families(text):
                whole = merged.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                for sample in family.samples:
                    whole.samples.append(sample._replace(labels={**sample.labels, "worker": str(number)}))
        yield from merged.values()

    def live(self) -> bool:
        """Tell whether no running worker hangs; one that is starting does not answer yet and does not count."""
        answers = self._pool.map(lambda port: self._ask(port, "/livez"), self._ports)
        return all(answer is None or answer[0] == 200 for answer in answers)

    def ready(self) -> bool:
        """Tell whether every worker runs and is ready."""
        answers = self._pool.map(lambda port: self._ask(port, "/readyz"), self._ports)
        return all(self._running()) and all(map(_good, answers))

    def why(self) -> str:
        """Return what each worker that is not ready says about it."""
        answers = enumerate(self._pool.map(lambda port: self._ask(port, "/readyz"), self._ports))
        lacking = {n: "no answer" if answer is None else answer[1] for n, answer in answers if not _good(answer)}
        return "\n".join(f"worker {number}: {' '.join(text.split())}" for number, text in lacking.items())

    def status(self, empty: Status, stopping: bool = False) -> Status:
        """Return the status of all workers as one; `empty` has the policy. One that was asked to end is not missed."""
        texts = list(self._pool.map(lambda port: self._ask(port, "/api/status"), self._ports))
        each = [msgspec.json.decode(text[1], type=Status) if _good(text) and text else None for text in texts]
        return self._merger.merge(each, list(self._running()), self._restarts(), empty, stopping)

    def _metrics(self, port: int) -> str:
        answer = self._ask(port, "/metrics")
        return answer[1] if answer is not None else ""

    def _ask(self, port: int, path: str) -> tuple[int, str] | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=_PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return None


def _good(answer: tuple[int, str] | None) -> bool:
    return answer is not None and answer[0] == 200
