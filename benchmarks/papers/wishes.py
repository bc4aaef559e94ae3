"""(alpha_i, k) with alpha from what people ask for: random wishes on the whole table, no class above any alpha."""

from __future__ import annotations

import numpy as np
from experiment import ORDER, SENSITIVE, start

from stream_anon.batch import partition
from stream_anon.core.privacy import AlphaK


def main() -> None:
    """Measure, and check that no share is above its bound."""
    experiment = start("wishes", __doc__)
    rng = np.random.default_rng(0)
    for row, wish in zip(experiment.rows, rng.integers(-1, 2, len(experiment.rows)), strict=True):
        row["psf"] = str(wish)
    model = {"model": "alpha_k", "attribute": SENSITIVE, "k": 5, "estimate": {"after": 100}}
    for name in ("sweep", "mondrian"):
        schema = experiment.schema(ORDER[:5], [model])
        rows = experiment.encoded(schema)
        found = partition(name, rows, schema)
        [wanted] = [m for m in schema.requirements.models if isinstance(m, AlphaK)]
        above = sum(wanted.shortfall(rows.take(index)) > 0 for index in found.classes)
        lost = sum(group.loss * len(group.rows) for group in found.groups) / len(rows)
        point = {"algorithm": name, "classes": len(found.classes), "above": int(above), "ncp": lost}
        experiment.points.append(point | {"suppressed": len(found.suppressed)})
        experiment.claim(f"{name}: {above} of {len(found.classes):,} classes are above an alpha", above == 0)
    experiment.finish()


if __name__ == "__main__":
    main()
