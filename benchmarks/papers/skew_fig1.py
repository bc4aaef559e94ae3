"""Personalized (l, c)-anonymity, Fig. 1: rows open to a skew attack against c, at l = 7."""

from __future__ import annotations

from typing import Any

from experiment import start
from personal import compare


def main() -> None:
    """Measure, and check the directions."""
    experiment = start("skew_fig1", __doc__)
    bounds = (0.2, 0.3, 0.4, 0.5)
    found = [compare(experiment, 7, c) for c in bounds]
    experiment.claim("(l, c)-clustering exposes nobody", all(point["exposed"] == 0 for point in found))
    experiment.claim("no class breaks l or c", all(point["broken_classes"] == 0 for point in found))
    exposed = [point["exposed_plain"] for point in found]
    experiment.claim("plain l-diversity exposes more the smaller c is", exposed == sorted(exposed, reverse=True))
    experiment.claim("plain l-diversity exposes somebody", exposed[0] > 0)
    personal = compare(experiment, 2, 0.4, personal=True)
    experiment.points.pop()
    text = f"14 sensitivities, c=.4: no class breaks l or c, nobody is exposed, {personal['suppressed']} suppressed"
    experiment.claim(text, personal["broken_classes"] == personal["exposed"] == 0)
    experiment.finish(draw)


def draw(axes: Any, points: list[dict[str, Any]]) -> None:
    """Rows exposed by both."""
    axes.plot([p["c"] for p in points], [p["exposed_plain"] for p in points], "s--", label="plain l-diversity")
    axes.plot([p["c"] for p in points], [p["exposed"] for p in points], "o-", label="(l, c)-clustering")
    axes.set(xlabel="c", ylabel="rows open to a skew attack, l = 7")


if __name__ == "__main__":
    main()
