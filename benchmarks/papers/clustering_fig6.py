"""L-clustering, Fig. 6: run time against l, for few, some and many quasi-identifiers."""

from __future__ import annotations

from typing import Any

from experiment import start


def main() -> None:
    """Measure, and check the directions."""
    experiment = start("clustering_fig6", __doc__)
    diversities = (2, 7, 12) if experiment.quick else (2, 4, 6, 8, 10, 12)
    experiment.clustering(2, 12)  # compiles; not a point of the figure
    experiment.points.clear()
    trends = {}
    for width in (2, 5, 8):
        full = [experiment.clustering(width, l)["full_domain_cpu_seconds"] for l in diversities]  # noqa: E741
        trends[width] = full[-1] / max(full[0], 1e-3)
    spread = max(trends.values()) / min(trends.values())
    text = ", ".join(f"|QI|={width}: x {trend:.2f}" for width, trend in trends.items())
    experiment.claim(f"full-domain time depends on l differently for few and many attributes ({text})", spread > 1.2)
    experiment.finish(draw)


def draw(axes: Any, points: list[dict[str, Any]]) -> None:
    """Draw the times of both algorithms."""
    for width in (2, 5, 8):
        mine = [point for point in points if point["attributes"] == width]
        axes.plot([p["l"] for p in mine], [p["cpu_seconds"] for p in mine], "o-", label=f"L-clustering, |QI|={width}")
        full = [p["full_domain_cpu_seconds"] for p in mine]
        axes.plot([p["l"] for p in mine], full, "s--", label=f"full domain, |QI|={width}")
    axes.set(xlabel="l", ylabel="CPU seconds", yscale="log")


if __name__ == "__main__":
    main()
