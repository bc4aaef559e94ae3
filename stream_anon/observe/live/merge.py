"""Make one status of those of several workers: sums, means by weight, and who has which partition."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest

from stream_anon.observe.live.status import (
    Distribution,
    Loss,
    PartitionFacts,
    Rates,
    Status,
    Totals,
    Waiting,
    WorkerFacts,
)
from stream_anon.observe.live.verdict import verdict


class Merger:
    """What is known of several workers. Their totals go on where one is started again, and its own begin at 0."""

    def __init__(self, workers: int) -> None:
        self._last: list[Status | None] = [None] * workers
        self._before: list[Totals] = [Totals() for _ in range(workers)]

    def merge(
        self, statuses: Sequence[Status | None], running: Sequence[bool], restarts: int, empty: Status, stopping: bool
    ) -> Status:
        """Return the status of all workers; one that runs and does not answer is starting, one that does not is gone.

        `empty` is the status of no worker at all: it has the policy. A worker that was asked to end is not missed.
        """
        for number, status in enumerate(statuses):
            last = self._last[number]
            if status is None:
                continue
            if last is not None and status.workers[0].uptime < last.workers[0].uptime:
                self._before[number] = _added_up([self._before[number], last.totals])
            self._last[number] = status
        totals = _added_up([*self._before, *(status.totals for status in self._last if status is not None)])
        workers = [_worker(n, *each, stopping) for n, each in enumerate(zip(statuses, running, strict=True))]
        return _whole(statuses, totals, workers, restarts, empty)


def _whole(
    statuses: Sequence[Status | None], totals: Totals, workers: list[WorkerFacts], restarts: int, empty: Status
) -> Status:
    known = [status for status in statuses if status is not None]
    partitions = [
        PartitionFacts(each.partition, each.state, each.lag, number, each.code, each.remedy)
        for number, status in enumerate(statuses)
        if status is not None
        for each in status.partitions
    ]
    partitions.sort(key=lambda each: each.partition)
    delays = _distribution([empty.delays, *(status.delays for status in known)])
    warnings = [warning for status in known for warning in status.warnings]
    return Status(
        empty.schema,
        empty.version,
        time.time(),
        verdict(empty.policy, totals, partitions, workers, warnings, delays.counts[-1]),
        empty.policy,
        totals,
        _waiting(known),
        delays,
        max((status.longest for status in known), default=0.0),
        _distribution([empty.sizes, *(status.sizes for status in known)]),
        [_loss(i, empty.losses[i], known) for i in range(len(empty.losses))],
        _rates([status.rates for status in known] or [empty.rates]),
        partitions,
        workers,
        restarts,
        warnings,
    )


def _worker(number: int, status: Status | None, runs: bool, stopping: bool) -> WorkerFacts:
    if stopping:
        return WorkerFacts(number, "stopping" if runs else "ended")
    if status is None or not runs:
        return WorkerFacts(number, "starting" if runs else "gone", why="no answer yet" if runs else "its process ended")
    [own] = status.workers
    return WorkerFacts(number, own.state, own.uptime, own.rate, own.waiting, own.partitions, own.why)


def _added_up(each: Sequence[Totals]) -> Totals:
    def number(name: str) -> int:
        return sum(getattr(one, name) for one in each)

    def codes(name: str) -> dict[str, int]:
        return dict(sum((Counter(getattr(one, name)) for one in each), Counter[str]()))

    return Totals(
        number("consumed"),
        number("published"),
        number("groups"),
        number("missed"),
        number("violations"),
        codes("rejected"),
        codes("suppressed"),
        codes("withdrawn"),
        codes("transactions"),
    )


def _waiting(known: Sequence[Status]) -> Waiting:
    each = [status.waiting for status in known]
    oldest = max((one.oldest for one in each), default=0.0)
    return Waiting(sum(o.rows for o in each), oldest, sum(o.clusters for o in each), sum(o.lag for o in each))


def _distribution(each: Sequence[Distribution]) -> Distribution:
    return Distribution(each[0].edges, [sum(counts) for counts in zip(*(one.counts for one in each), strict=True)])


def _loss(i: int, empty: Loss, known: Sequence[Status]) -> Loss:
    """Average the losses of an attribute; each worker counts by the groups it published in the last minute."""
    each = [(status.losses[i], max(sum(status.sizes.counts), 1)) for status in known]
    trends = zip(*(one.trend for one, _ in each), strict=True)
    weights = [weight for _, weight in each]
    return Loss(
        empty.attribute,
        _mean([one.minute for one, _ in each], weights),
        _mean([one.hour for one, _ in each], weights),
        [_mean(values, weights) for values in trends] if each else empty.trend,
    )


def _mean(values: Sequence[float | None], weights: Sequence[int]) -> float | None:
    there = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    total = sum(weight for _, weight in there)
    return round(sum(value * weight for value, weight in there) / total, 4) if there else None


def _rates(each: Sequence[Rates]) -> Rates:
    """Add up rates by their times: workers began at different moments, and were asked at different ones."""
    end, step = max(one.end for one in each), each[0].step
    return Rates(
        step,
        end,
        _added([(one.consumed, one.end) for one in each], end, step),
        _added([(one.published, one.end) for one in each], end, step),
    )


def _added(series: Sequence[tuple[list[float], float]], end: float, step: float) -> list[float]:
    """Lay series over each other, the newest values last.

    >>> _added([([1.0, 2.0], 10.0), ([5.0], 8.0)], end=10.0, step=2.0)
    [6.0, 2.0]
    """
    backwards = [[*([0.0] * round((end - at) / step)), *reversed(values)] for values, at in series]
    return [round(sum(values), 1) for values in zip_longest(*backwards, fillvalue=0.0)][::-1]
