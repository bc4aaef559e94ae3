"""AOS: the run time of Mondrian does not depend on the order of the attributes."""

from __future__ import annotations

import time
from itertools import islice, permutations
from typing import Any

import numpy as np
from experiment import ORDER, start

from stream_anon.batch import partition

REPEATS = 5
WITHIN = 2.0
"""Medians of the orders may differ by this factor; what they differ by is the number of cuts, not the order itself."""


def main() -> None:
    """Measure, and check the claim."""
    experiment = start("order_time", __doc__)
    schema = experiment.schema(ORDER[:7], [])
    rows = experiment.encoded(schema)
    partition("mondrian", rows, schema, {"order": list(ORDER[:7])})
    for order in islice(permutations(ORDER[:7]), 0, 5040, 1260 if experiment.quick else 420):
        spent = []
        for _ in range(REPEATS):
            begin = time.process_time()
            found = partition("mondrian", rows, schema, {"order": list(order)})
            spent.append(time.process_time() - begin)
        lost = sum(group.loss * len(group.rows) for group in found.groups) / len(rows)
        point = {"order": order, "cpu_seconds": float(np.median(spent)), "ncp": lost, "classes": len(found.groups)}
        experiment.points.append(point)
        print(point, flush=True)
    times = [point["cpu_seconds"] / point["classes"] for point in experiment.points]
    ratio = max(times) / min(times)
    experiment.claim(f"run time per class is the same for every order, within a factor of {ratio:.2f}", ratio < WITHIN)
    experiment.finish(draw)


def draw(axes: Any, points: list[dict[str, Any]]) -> None:
    """Time per order, by its first attribute."""
    axes.plot(range(len(points)), [point["cpu_seconds"] for point in points], "o-", label="CPU seconds")
    axes.set_xticks(range(len(points)), [point["order"][0] for point in points], rotation=60)
    axes.set(ylabel="CPU seconds", ylim=(0, None))


if __name__ == "__main__":
    main()
