"""What came of a table, as plain data: the same words for one piece, for parts, and for Spark."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from stream_anon.core.loss.classes import ClassMeasures
from stream_anon.observe.tally import Tally, smallest_group


def summary_of(algorithm: str, tally: Tally, measures: ClassMeasures) -> dict[str, Any]:
    """Return the counts, losses and measures of a table."""
    return {
        "algorithm": algorithm,
        "rows": tally.consumed,
        "published": tally.published,
        "suppressed": tally.suppressed,
        "rejected": dict(tally.rejected),
        **({} if tally.lines is None else {"lines": asdict(tally.lines)}),
        "classes": tally.groups.total(),
        **smallest_group(tally.smallest, tally.k, tally.counts),
        "loss": round(tally.loss, 5),
        "loss_per_attribute": {name: round(loss, 5) for name, loss in tally.losses.items()},
        "raised": dict(tally.raised),
        "loss_of_sensitive": {name: round(loss, 5) for name, loss in tally.lost_by_raising.items()},
        "measures": measures.data(),
    }
