"""L-clustering, Fig. 5: run time against the number of quasi-identifiers, l = 7."""

from __future__ import annotations

from typing import Any

from experiment import start


def main() -> None:
    """Measure, and check the directions."""
    experiment = start("clustering_fig5", __doc__)
    widths = (2, 5, 8) if experiment.quick else (2, 3, 4, 5, 6, 7, 8)
    experiment.clustering(2, 12)  # compiles; not a point of the figure
    experiment.points.clear()
    found = [experiment.clustering(width, 7) for width in widths]
    times = [point["cpu_seconds"] for point in found]
    experiment.claim("L-clustering takes longer with more attributes", times[-1] > times[0])
    full = [point["full_domain_cpu_seconds"] for point in found]
    experiment.claim(
        "full-domain generalization grows faster than in proportion", full[-1] / full[0] > widths[-1] / widths[0]
    )
    if experiment.limit == 45_222:
        experiment.claim(f"45,222 rows, 8 attributes, l=7 in {times[-1]:.0f} <= 60 CPU seconds", times[-1] <= 60)
    experiment.finish(draw)


def draw(axes: Any, points: list[dict[str, Any]]) -> None:
    """Draw the times of both algorithms."""
    at = [point["attributes"] for point in points]
    axes.plot(at, [point["cpu_seconds"] for point in points], "o-", label="L-clustering")
    axes.plot(at, [point["full_domain_cpu_seconds"] for point in points], "s--", label="full domain")
    axes.set(xlabel="quasi-identifiers", ylabel="CPU seconds", yscale="log")


if __name__ == "__main__":
    main()
