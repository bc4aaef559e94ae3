"""Personalized (l, c)-anonymity, Fig. 3: the loss of (l, c)-clustering and of globally recoded l-diversity, c = .4."""

from __future__ import annotations

from typing import Any

from experiment import start
from personal import compare


def main() -> None:
    """Measure, and check the direction."""
    experiment = start("skew_fig3", __doc__)
    found = [compare(experiment, l, 0.4) for l in (3, 5, 7, 9)]  # noqa: E741
    lower = all(point["loss"] < point["loss_plain"] for point in found)
    experiment.claim("(l, c)-clustering loses less than l-diversity by global recoding", lower)
    experiment.finish(draw)


def draw(axes: Any, points: list[dict[str, Any]]) -> None:
    """Losses of both."""
    axes.plot([p["l"] for p in points], [p["loss_plain"] for p in points], "s--", label="l-diversity, global recoding")
    axes.plot([p["l"] for p in points], [p["loss"] for p in points], "o-", label="(l, c)-clustering")
    axes.set(xlabel="l", ylabel="loss of the table, c = .4", ylim=(0, None))


if __name__ == "__main__":
    main()
