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


def gains(comparison: Comparison, losses: dict[str, float]) -> list[Gain]:
    """Return the changes that are worth a word, the best first; `losses` are those of each quasi-identifier."""
    rows = comparison.rows
    if rows is None or not len(rows):
        return []
    some = rows.take(slice(0, TRIED))
    found = [gain for gain in _changes(comparison, some, losses) if gain.before - gain.after >= WORTH]
    found = found or [gain for gain in _with_less(comparison, some) if gain.before - gain.after >= WORTH]
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
