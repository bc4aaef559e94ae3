"""L-clustering, Fig. 4: how much the loss depends on the random rows that classes start from."""

from __future__ import annotations

from typing import Any

import numpy as np
from experiment import start


def main() -> None:
    """Measure, and check that the spread is small."""
    experiment = start("clustering_fig4", __doc__)
    seeds = 5 if experiment.quick else 20
    for width, l in ((5, 7), (8, 7)):  # noqa: E741
        losses = [experiment.clustering(width, l, seed)["loss"] for seed in range(seeds)]
        spread = float(np.std(losses) / np.mean(losses))
        experiment.claim(
            f"{width} attributes, l={l}: the losses of {seeds} seeds spread by {spread:.1%}, below 5 %", spread < 0.05
        )
    experiment.finish(draw)


def draw(axes: Any, points: list[dict[str, Any]]) -> None:
    """One line of points per number of attributes."""
    for width in (5, 8):
        mine = [point for point in points if point["attributes"] == width]
        axes.plot([p["seed"] for p in mine], [p["relative_loss"] for p in mine], "o", label=f"|QI|={width}, l=7")
    axes.set(xlabel="seed", ylabel="relative loss")


if __name__ == "__main__":
    main()
