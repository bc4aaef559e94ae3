"""A page that tells what came of anonymizing a table: one file, no scripts, nothing loaded, no data values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
table{border-collapse:collapse;width:100%}td,th{padding:.3rem .6rem;text-align:left;border-bottom:1px solid #ddd}
.bar{background:#2563eb;height:.8rem;border-radius:.2rem}td.n{text-align:right;white-space:nowrap}
@media(prefers-color-scheme:dark){body{color:#eee;background:#111}td,th{border-color:#333}}
"""


def page(found: Mapping[str, Any], sizes: Sequence[int], policy: str) -> str:
    """The page for a summary and the sizes of the classes."""
    facts = {
        "algorithm": found["algorithm"],
        "rows": f"{found['rows']:,}",
        "published": f"{found['published']:,} in {found['classes']:,} classes",
        "suppressed": f"{found['suppressed']:,}",
        "rejected": f"{sum(found['rejected'].values()):,}",
        "smallest class": f"{found['smallest_class_people']:,} people, required {found['required_people']:,}",
        "information lost": f"{found['loss']:.2%}",
        "time": f"{found['seconds']} s, {found['cpu_seconds']} s CPU",
        "memory": f"{found['peak_mb']:,.0f} MB",
    }
    rows = "".join(f"<tr><th>{escape(key)}</th><td>{escape(str(value))}</td></tr>" for key, value in facts.items())
    losses = _bars({name: (loss, f"{loss:.2%}") for name, loss in found["loss_per_attribute"].items()})
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{escape(policy)}</title><style>{_STYLE}</style><h1>{escape(policy)}</h1><table>{rows}</table>"
        f"<h2>Information lost per attribute</h2>{losses}<h2>Rows per class</h2>{_bars(_histogram(sizes))}</html>\n"
    )


def _bars(lines: Mapping[str, tuple[float, str]]) -> str:
    """Lines with a bar each, as long as its share."""
    cells = "".join(
        f"<tr><td>{escape(name)}</td><td style='width:60%'><div class=bar style='width:{min(share, 1):.1%}'></div></td>"
        f"<td class=n>{escape(text)}</td></tr>"
        for name, (share, text) in lines.items()
    )
    return f"<table>{cells}</table>"


def _histogram(sizes: Sequence[int]) -> dict[str, tuple[float, str]]:
    """Classes by size, in steps that double.

    >>> _histogram([5, 6, 9])
    {'4 to 7': (1.0, '2'), '8 to 15': (0.5, '1')}
    """
    if not len(sizes):
        return {}
    step, count = np.unique(np.log2(np.asarray(sizes)).astype(np.int64), return_counts=True)
    return {
        f"{2**s} to {2 ** (s + 1) - 1}": (float(c / count.max()), f"{c:,}")
        for s, c in zip(step.tolist(), count.tolist(), strict=True)
    }
