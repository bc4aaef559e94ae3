"""L-clustering, Fig. 3: the relative loss against l, for 2, 5 and 8 quasi-identifiers."""

from __future__ import annotations

from typing import Any

from experiment import start


def main() -> None:
    """Measure, and check the directions."""
    experiment = start("clustering_fig3", __doc__)
    diversities = (2, 7, 12) if experiment.quick else (2, 4, 6, 8, 10, 12)
    for width in (2, 5, 8):
        found = [experiment.clustering(width, l) for l in diversities]  # noqa: E741
        for key in ("relative_loss", "full_domain_relative_loss"):
            losses = [point[key] for point in found]
            experiment.claim(f"{width} attributes: {key} rises with l", losses == sorted(losses))
    experiment.finish(draw)


def draw(axes: Any, points: list[dict[str, Any]]) -> None:
    """Relative losses."""
    for width in (2, 5, 8):
        mine = [point for point in points if point["attributes"] == width]
        axes.plot([p["l"] for p in mine], [p["relative_loss"] for p in mine], "o-", label=f"L-clustering, |QI|={width}")
        full = [p["full_domain_relative_loss"] for p in mine]
        axes.plot([p["l"] for p in mine], full, "s--", label=f"full domain, |QI|={width}")
    axes.set(xlabel="l", ylabel="relative loss")


if __name__ == "__main__":
    main()
