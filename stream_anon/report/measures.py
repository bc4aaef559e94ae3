"""What the papers measure of classes, and what is left in each column, as tables of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stream_anon.report.parts import Table

_MEANINGS = {
    "average_class_size": ("Average class size", "rows per class over k; 1 is best"),
    "discernibility": ("Discernibility", "rows that a row cannot be told from, on average"),
    "hamming": ("Hamming distance", "share of cells that are not published exactly"),
    "bits": ("Uncertainty", "bits per row: the logarithm of how many combinations of values labels cover"),
    "kl_divergence": ("KL divergence", "nats: how far rows are from being spread evenly over what labels cover"),
    "diameter": ("Diameter", "largest loss of two rows of one class, summed over the columns"),
}


def measure_tables(measures: Mapping[str, Any]) -> Iterator[Table]:
    """Build the tables of measures as `anonymize --json` has them."""
    rows = [(f"{measures[name]:,.4f}", *words) for name, words in _MEANINGS.items()]
    for name, share in measures["classification"].items():
        meaning = "share of rows whose value is not the most frequent of their class"
        rows.append((f"{share:,.4f}", f"Classification by {name}", meaning))
    yield Table(
        "Measures of the papers", "What the classes cost, as it is compared.", ("value", "measure", "is"), tuple(rows)
    )
    columns = [
        (f"{found['distribution']:.4f}", f"{found['correlation']:.4f}", name)
        for name, found in measures["columns"].items()
    ]
    yield Table(
        "What is left in each column",
        "How much of the distribution moved, each label spread evenly over what it covers, and how much correlations "
        "with other columns changed; 0 is best.",
        ("distribution", "correlation", "column"),
        tuple(columns),
    )
