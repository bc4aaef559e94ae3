"""L-clustering, Fig. 2: the loss of the table against the number of quasi-identifiers, for l = 2, 7, 12."""

from __future__ import annotations

from typing import Any

from experiment import start


def main() -> None:
    """Measure, and check the directions."""
    experiment = start("clustering_fig2", __doc__)
    widths = (2, 5, 8) if experiment.quick else (2, 3, 4, 5, 6, 7, 8)
    found = {(w, l): experiment.clustering(w, l) for l in (2, 7, 12) for w in widths}  # noqa: E741
    for l in (2, 7, 12):  # noqa: E741
        for key in ("loss", "full_domain_loss"):
            losses = [found[w, l][key] for w in widths]
            experiment.claim(f"l={l}: {key} rises with the attributes", losses == sorted(losses))
    lower = all(point["loss"] < point["full_domain_loss"] for point in found.values())
    experiment.claim("L-clustering always loses less than full-domain generalization", lower)
    ratio = {key: p["full_domain_loss"] / max(p["loss"], 1e-9) for key, p in found.items()}
    experiment.claim(
        "the gap is widest at the smallest l and fewest attributes", max(ratio, key=ratio.__getitem__) == (2, 2)
    )
    if experiment.limit == 45_222:
        experiment.claim(
            f"l=2, two attributes: {ratio[2, 2]:,.0f} times, in 3,000..20,000", 3_000 <= ratio[2, 2] <= 20_000
        )
    experiment.finish(draw)


def draw(axes: Any, points: list[dict[str, Any]]) -> None:
    """Logarithms of the losses."""
    for l in (2, 7, 12):  # noqa: E741
        mine = [point for point in points if point["l"] == l]
        axes.plot([p["attributes"] for p in mine], [p["loss"] for p in mine], "o-", label=f"L-clustering, l={l}")
        axes.plot(
            [p["attributes"] for p in mine], [p["full_domain_loss"] for p in mine], "s--", label=f"full domain, l={l}"
        )
    axes.set(xlabel="quasi-identifiers", ylabel="loss of the table, bits", yscale="log")


if __name__ == "__main__":
    main()
