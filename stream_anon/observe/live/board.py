"""The board of one run: an observer that keeps what the live page shows, and hands it out as a `Status`."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from stream_anon import __version__
from stream_anon.observe.live.rolling import Rolling
from stream_anon.observe.live.status import (
    SCHEMA,
    Distribution,
    Loss,
    PartitionFacts,
    PolicyFacts,
    Rates,
    State,
    Status,
    Totals,
    Waiting,
    WorkerFacts,
)
from stream_anon.observe.live.verdict import verdict
from stream_anon.observe.observer import Floats, Observer

STALLED = 60.0
"""Seconds without a round of the loop after which a worker counts as hanging: longer than any call may take."""

_STEP, _STEPS = 2.0, 150  # five minutes of rates
_MINUTE, _HOUR = 60.0, 60
_BINS = 25  # of the delay bound; one more for what came later
_SIZES = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)  # times k
_NO_BOUND = 5.0  # seconds that the delays are drawn over where the policy has no bound by time

Partitions = Callable[[], Sequence[PartitionFacts]]


class Board(Observer):
    """Counts since the start, sums of the last minutes and of the last hour. Another thread may ask for the status.

    `partitions` tells the states of partitions, `warning` and `why` what `/readyz` would say; all of them are asked
    only when somebody looks.
    """

    def __init__(
        self,
        policy: PolicyFacts,
        partitions: Partitions = tuple,
        warning: Callable[[], str] = str,
        why: Callable[[], str] = str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._policy, self._partitions, self._warning, self._why, self._clock = policy, partitions, warning, why, clock
        self._guard = threading.Lock()
        self._totals, self._waiting, self._longest = Totals(), Waiting(), 0.0
        self._codes: dict[str, Counter[str]] = {
            name: Counter() for name in ("rejected", "suppressed", "withdrawn", "transactions")
        }
        self._lags: dict[int, int] = {}
        self._started = self._round = time.monotonic()
        self._ended = False
        self._smallest_edges = np.unique(np.ceil(np.array(_SIZES) * policy.k))
        self._delay_edges = np.linspace(0.0, policy.bound or _NO_BOUND, _BINS + 1)
        # columns: in, out, delays, sizes, groups, losses
        self._delays = slice(2, 2 + _BINS + 1)
        self._sizes = slice(self._delays.stop, self._delays.stop + len(self._smallest_edges) + 1)
        self._losses = slice(self._sizes.stop + 1, self._sizes.stop + 1 + len(policy.attributes))
        self._fine = Rolling(self._losses.stop, _STEP, _STEPS)
        self._coarse = Rolling(self._losses.stop, _MINUTE, _HOUR)

    def consumed(self, records: int) -> None:
        """Count the records that were read."""
        with self._guard:
            self._totals.consumed += records
            self._add(0, records)

    def rejected(self, code: str, records: int) -> None:
        """Count rejected records by code."""
        self._count("rejected", code, records)

    def suppressed(self, reason: str, records: int) -> None:
        """Count suppressed rows by reason."""
        self._count("suppressed", reason, records)

    def withdrawn(self, reason: str, groups: int, records: int) -> None:
        """Count withdrawn groups by reason."""
        self._count("withdrawn", reason, groups)

    def transaction(self, result: str, seconds: float) -> None:
        """Count transactions by result."""
        self._count("transactions", result, 1)

    def published(
        self, reasons: Sequence[str], sizes: Sequence[int], delays: Floats, ages: Floats, losses: Floats
    ) -> None:
        """Add groups to the distributions of delays and sizes, and to the losses of their attributes."""
        row = np.zeros(self._losses.stop)
        row[1] = len(delays)
        row[self._delays] = np.bincount(np.searchsorted(self._delay_edges[1:], delays), minlength=_BINS + 1)
        edges = self._smallest_edges
        row[self._sizes] = np.bincount(np.searchsorted(edges, sizes, side="right"), minlength=len(edges) + 1)
        row[self._sizes.stop] = len(sizes)
        row[self._losses] = losses.sum(axis=0)
        with self._guard:
            self._totals.published += len(delays)
            self._totals.groups += len(sizes)
            self._longest = max(self._longest, float(delays.max(initial=0.0)))
            self._add(slice(None), row)

    def missed(self, records: int) -> None:
        """Count rows that left too late."""
        with self._guard:
            self._totals.missed += records

    def violated(self) -> None:
        """Count groups stopped at the gate."""
        with self._guard:
            self._totals.violations += 1

    def lag(self, partition: int, records: int) -> None:
        """Keep the lag of a partition."""
        self._lags[partition] = records

    def left(self, partition: int) -> None:
        """Forget the lag of a partition: its new owner tells it."""
        self._lags.pop(partition, None)

    def buffered(self, rows: int, oldest: float, clusters: int) -> None:
        """Keep the numbers of what waits."""
        self._waiting = Waiting(rows, oldest, clusters)

    def alive(self) -> None:
        """Note the end of a round."""
        self._round = time.monotonic()

    def end(self) -> None:
        """Note that the run is over."""
        self._ended = True

    def status(self) -> Status:
        """Return the state as it is now."""
        now, lags = self._clock(), dict(self._lags)
        partitions = [
            PartitionFacts(each.partition, each.state, lags.get(each.partition), 0, each.code, each.remedy)
            for each in self._partitions()
        ]
        with self._guard:
            fine, coarse = self._fine.rows(now), self._coarse.rows(now)
            end, longest = self._fine.end(now), self._longest
            totals = Totals(
                self._totals.consumed,
                self._totals.published,
                self._totals.groups,
                self._totals.missed,
                self._totals.violations,
                **{name: dict(codes) for name, codes in self._codes.items()},
            )
        steps = min(_STEPS, int((time.monotonic() - self._started) / _STEP) + 2)
        minute = fine[-int(_MINUTE / _STEP) :].sum(axis=0)
        waiting = Waiting(self._waiting.rows, self._waiting.oldest, self._waiting.clusters, sum(lags.values()))
        worker = WorkerFacts(
            0,
            self._state(),
            round(time.monotonic() - self._started, 1),
            round(float(fine[-6:-1, 0].sum()) / (5 * _STEP), 1),
            waiting.rows,
            len(partitions),
            self._why(),
        )
        warnings = [warning] if (warning := self._warning()) else []
        return Status(
            SCHEMA,
            __version__,
            now,
            verdict(self._policy, totals, partitions, [worker], warnings, int(minute[self._delays.stop - 1])),
            self._policy,
            totals,
            waiting,
            Distribution(self._delay_edges.round(4).tolist(), _whole(minute[self._delays])),
            round(longest, 3),
            Distribution([0.0, *self._smallest_edges.tolist()], _whole(minute[self._sizes])),
            self._losses_of(minute, coarse),
            Rates(_STEP, end, *((fine[-steps:, i] / _STEP).round(1).tolist() for i in (0, 1))),
            partitions,
            [worker],
            warnings=warnings,
        )

    def _state(self) -> State:
        if self._ended:
            return "ended"
        if time.monotonic() - self._round > STALLED:
            return "stalled"
        return "incomplete" if self._why() else "working"

    def _losses_of(self, minute: Floats, coarse: Floats) -> list[Loss]:
        groups = coarse[:, self._sizes.stop]
        found = []
        for i, name in enumerate(self._policy.attributes):
            at = self._losses.start + i
            trend = [_mean(lost, n) for lost, n in zip(coarse[:, at], groups, strict=True)]
            of_minute = _mean(minute[at], minute[self._sizes.stop])
            found.append(Loss(name, of_minute, _mean(coarse[:, at].sum(), groups.sum()), trend))
        return found

    def _count(self, kind: str, code: str, number: int) -> None:
        with self._guard:
            self._codes[kind][code] += number

    def _add(self, column: int | slice, values: float | Floats) -> None:
        now = self._clock()
        self._fine.add(column, values, now)
        self._coarse.add(column, values, now)


def _whole(values: Floats) -> list[int]:
    return [int(value) for value in values]


def _mean(total: float, count: float) -> float | None:
    return round(float(total / count), 4) if count else None
