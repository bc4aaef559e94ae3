"""What would help most, tried on the rows themselves: a longer bound, a quasi-identifier less, or half of k."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.insight.compare import Comparison, Setting, bound_in_words
from stream_anon.local.trial import try_stream
from stream_anon.observe.tally import Tally
from stream_anon.policy.settings import MaxDelay

LONGER = 4
"""A bound that is tried is so many times as long."""

TRIED = 10_000
"""Rows that are tried: enough to see what helps, few enough for a second."""

FEWEST = 2
"""The least k there is."""

WORTH = 0.02
"""A share of information that is worth a word."""


@dataclass(frozen=True, slots=True)
class Gain:
    """A change that would help, in words, and the loss without and with it."""

    change: str
    before: float
    after: float

    @property
    def worth(self) -> bool:
        """Whether it is worth a word."""
        return self.before - self.after >= WORTH

    def __str__(self) -> str:
        return f"{self.change} would lose {self.after:.0%} in place of {self.before:.0%}"


def limits(comparison: Comparison, losses: dict[str, float]) -> str:
    """Say what stands in the way where no change helps: the dearest column, and how few groups the records can make."""
    worst = max(losses, key=lambda name: losses[name], default="")
    dearest = f"{worst} loses most, {losses[worst]:.0%}; " if worst and losses[worst] > 0 else ""
    count, k = len(comparison.rows or ()), comparison.schema().requirements.k
    return f"{dearest}{count:,} records make at most {count // k:,} groups of {k:,}: it takes more records"


def gains(comparison: Comparison, losses: dict[str, float]) -> list[Gain]:
    """Return the changes that were tried, the best first; `losses` are those of each quasi-identifier.

    Half of k protects less: it is tried only where nothing else is worth a word.
    """
    rows = comparison.rows
    if rows is None or not len(rows):
        return []
    some = rows.take(slice(0, TRIED))
    found = list(_changes(comparison, some, losses))
    if not any(gain.worth for gain in found):
        found += _with_less(comparison, some)
    return sorted(found, key=lambda gain: gain.after - gain.before)


def _changes(comparison: Comparison, rows: Batch, losses: dict[str, float]) -> Iterator[Gain]:
    schema = comparison.schema()
    bound = schema.policy.stream.max_delay
    before = _run(comparison, rows)
    if len(rows) > min((bound.time or np.inf) * comparison.rate, bound.records or np.inf):
        longer = MaxDelay(time=bound.time and bound.time * LONGER, records=bound.records and bound.records * LONGER)
        setting = Setting(schema.policy.algorithm.name, schema.requirements.k, longer)
        yield Gain(f"a bound of {bound_in_words(longer)}", before.loss, _run(comparison, rows, setting).loss)
    worst = max(before.losses, key=lambda name: losses.get(name, 0.0))
    if len(before.losses) > 1:
        left = [q for q, column in enumerate(schema.quasi) if column.name != worst]
        fewer = msgspec.structs.replace(rows, qi=rows.qi[:, left])
        others = sum(loss for name, loss in before.losses.items() if name != worst) / len(left)
        yield Gain(f"the others without {worst}", others, _run(comparison.without(worst), fewer).loss)


def _with_less(comparison: Comparison, rows: Batch) -> Iterator[Gain]:
    """Try half of k: it protects less, so that it comes last."""
    schema = comparison.schema()
    fewer, name = schema.requirements.k // 2, schema.policy.algorithm.name
    if fewer >= FEWEST:
        setting = Setting(name, fewer, schema.policy.stream.max_delay)
        yield Gain(
            f"k = {fewer}, which protects less,", _run(comparison, rows).loss, _run(comparison, rows, setting).loss
        )


def _run(comparison: Comparison, rows: Batch, setting: Setting | None = None) -> Tally:
    """Return what is counted under a setting; a suppressed row counts as lost whole."""
    return try_stream(comparison.schema(setting), rows, comparison.rate, lambda share: None).tally
