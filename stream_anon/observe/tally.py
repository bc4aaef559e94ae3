"""Counts, delays and losses of a run, kept in bounded memory: what `demo`, `pipe` and the benchmarks report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Literal

import numpy as np

from stream_anon.core.decode import LineCount, Rejection
from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Floats, Ints, Tree
from stream_anon.core.loss.sensitive import sensitive_loss
from stream_anon.core.publish import rows_of

_BINS = 4096


class Delays:
    """The distribution of waiting times: exact count, mean and maximum, quantiles to one part in a hundred.

    >>> delays = Delays()
    >>> delays.add(np.array([0.5, 1.0, 2.0, 4.0]))
    >>> delays.count, delays.mean, delays.max, round(delays.quantile(0.5), 1)
    (4, 1.875, 4.0, 1.0)
    >>> delays.within(0.4), delays.within(1.1), delays.within(4.1)
    (0, 2, 4)
    """

    # Bins grow by 1 % steps from a microsecond to some months: fine enough to print, few enough to keep.
    _LOWEST, _STEP = 1e-6, 1.01

    def __init__(self) -> None:
        self.count = 0
        self.max = 0.0
        self._sum = 0.0
        self._bins = np.zeros(_BINS, dtype=np.int64)

    def add(self, waits: Floats) -> None:
        """Add more waiting times."""
        if not len(waits):
            return
        self.count += len(waits)
        self._sum += float(waits.sum())
        self.max = max(self.max, float(waits.max()))
        place = np.log(np.maximum(waits, self._LOWEST) / self._LOWEST) / np.log(self._STEP)
        np.add.at(self._bins, np.minimum(np.ceil(place - 1e-9).astype(np.int64), _BINS - 1), 1)

    @property
    def mean(self) -> float:
        """The average wait, 0 if there was none."""
        return self._sum / self.count if self.count else 0.0

    def within(self, wait: float) -> int:
        """Return how many waited no longer than this."""
        place = (np.log(max(wait, self._LOWEST)) - np.log(self._LOWEST)) / np.log(self._STEP)
        return int(self._bins[: int(place + 1e-9) + 1].sum())

    def quantile(self, share: float) -> float:
        """Return the wait that `share` of all did not exceed."""
        if not self.count:
            return 0.0
        place = int(np.searchsorted(np.cumsum(self._bins), share * self.count - 1e-9))
        return float(min(self._LOWEST * self._STEP**place, self.max))


class Tally:
    """The counts of a run so far. `counts` is what `k` counts and `smallest` is measured in: people or records."""

    def __init__(self, columns: Sequence[str], k: int, counts: Literal["people", "records"]) -> None:
        self.columns = tuple(columns)
        self.k = k
        self.counts = counts
        self.consumed = 0
        self.published = 0
        self.suppressed = 0
        self.lines: LineCount | None = None
        self.rejected: Counter[str] = Counter()
        self.groups: Counter[str] = Counter()
        self.smallest = 0
        self.delays = Delays()
        self.raised: Counter[str] = Counter()
        self._lost_by_raising: dict[str, float] = {}
        self._losses = np.zeros(len(self.columns))
        self._loss = 0.0

    def read(self, count: int, rejections: Sequence[Rejection] = ()) -> None:
        """Count records that came in, and those that could not be used."""
        self.consumed += count
        self.rejected.update([str(rejection.code) for rejection in rejections])

    def publish(self, groups: Sequence[Group], now: float) -> None:
        """Count groups that left."""
        for _, run in groupby(groups, key=lambda group: id(group.released)):
            some = list(run)
            released, places = some[0].released, [group.place for group in some]
            rows, begins = rows_of(released.starts, places)
            sizes = np.diff(begins)
            self.published += int(sizes.sum())
            self.groups.update(map(str, map(released.reasons.__getitem__, places)))
            fewest = min(map(released.people.__getitem__, places))
            self.smallest = min(self.smallest or fewest, fewest)
            self._losses += sizes @ released.losses[places]
            self._loss += float(sizes @ np.array(list(map(released.loss.__getitem__, places))))
            for group in some if released.shown is not released.rows.sensitive else ():
                for name, nodes in group.raised.items():
                    self._raise(name, nodes, group)
            self.delays.add(now - released.rows.arrived[rows])

    def _raise(self, name: str, nodes: Ints, group: Group) -> None:
        [tree] = [column.hierarchy for column in group.schema.sensitive if column.name == name]
        assert isinstance(tree, Tree)  # noqa: S101 - only values in a tree can be raised
        self.raised[name] += len(nodes)
        lost = sum(sensitive_loss(tree, node) for node in nodes.tolist())
        self._lost_by_raising[name] = self._lost_by_raising.get(name, 0.0) + lost

    def figures(self) -> dict[str, Any]:
        """Return what `add` takes: the counts of groups and rows that left, as plain data."""
        return {
            "published": self.published,
            "suppressed": self.suppressed,
            "smallest": self.smallest,
            "groups": dict(self.groups),
            "raised": dict(self.raised),
            "lost_by_raising": self._lost_by_raising,
            "losses": self._losses.tolist(),
            "loss": self._loss,
        }

    def add(self, figures: Mapping[str, Any]) -> None:
        """Add what another tally of the same policy counted; waiting times are not among it."""
        self.published += figures["published"]
        self.suppressed += figures["suppressed"]
        if figures["published"]:
            self.smallest = min(self.smallest or figures["smallest"], figures["smallest"])
        self.groups.update(figures["groups"])
        self.raised.update(figures["raised"])
        for name, loss in figures["lost_by_raising"].items():
            self._lost_by_raising[name] = self._lost_by_raising.get(name, 0.0) + loss
        self._losses += np.array(figures["losses"])
        self._loss += figures["loss"]

    @property
    def lost_by_raising(self) -> dict[str, float]:
        """The share of information lost by raising sensitive values, by attribute, over published rows."""
        return {name: loss / max(self.published, 1) for name, loss in self._lost_by_raising.items()}

    def suppress(self, arrived: Floats | Ints) -> None:
        """Count rows that left unpublished."""
        self.suppressed += len(arrived)

    @property
    def loss(self) -> float:
        """The share of information lost over all rows that left; a suppressed row loses everything."""
        left = self.published + self.suppressed
        return (self._loss + self.suppressed) / left if left else 0.0

    @property
    def losses(self) -> dict[str, float]:
        """The share of information lost per column, over published rows."""
        return dict(zip(self.columns, (self._losses / max(self.published, 1)).tolist(), strict=True))

    def summary(self) -> dict[str, Any]:
        """Return all counts and measures as plain data."""
        return {
            "consumed": self.consumed,
            "published": self.published,
            "suppressed": self.suppressed,
            "rejected": dict(self.rejected),
            **({} if self.lines is None else {"lines": asdict(self.lines)}),
            "groups": dict(self.groups),
            **smallest_group(self.smallest, self.k, self.counts),
            "loss": round(self.loss, 5),
            "loss_per_attribute": {name: round(loss, 5) for name, loss in self.losses.items()},
            "raised": dict(self.raised),
            "loss_of_sensitive": {name: round(loss, 5) for name, loss in self.lost_by_raising.items()},
            "delay_mean": round(self.delays.mean, 4),
            "delay_p99": round(self.delays.quantile(0.99), 4),
            "delay_max": round(self.delays.max, 4),
        }


def smallest_group(smallest: int, k: int, counts: str) -> dict[str, Any]:
    """Return the smallest group and what is required of it as plain data; people are None if not counted.

    >>> smallest_group(5, 5, "records")["smallest_group_people"] is None
    True
    """
    judged = counts == "people"
    return {
        "k_counts": counts,
        "smallest_group_people": smallest if judged else None,
        "required_people": k if judged else None,
        **({} if judged else {"smallest_group_records": smallest, "required_records": k}),
    }
