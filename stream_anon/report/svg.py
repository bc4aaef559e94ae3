"""SVG primitives: text, bars and lines, coloured by the page's style."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from math import floor, log10

WIDTH = 560
"""Units across every drawing: about as many pixels on a wide screen, where two of them stand side by side."""


def svg(height: float, name: str, description: str, marks: Iterable[str]) -> str:
    """Return a drawing that a screen reader can name."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(name, quote=True)}">'
        f"<desc>{escape(description)}</desc>{''.join(marks)}</svg>"
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """Return a text at a place; `kind` is a class of the style."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def bar(x: float, y: float, width: float, height: float, kind: str, tooltip: str = "") -> str:
    """Return a bar with a tooltip."""
    title = f"<title>{escape(tooltip)}</title>" if tooltip else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}" rx="2" '
        f'class="{kind}">{title}</rect>'
    )


def line(x: float, y: float, to_x: float, to_y: float, kind: str) -> str:
    """Return a straight line between two places."""
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" class="{kind}"/>'


def path(points: Iterable[tuple[float, float]], kind: str) -> str:
    """Return a line through points."""
    return f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" class="{kind}"/>'


def dot(x: float, y: float, kind: str, tooltip: str) -> str:
    """Return a point with a tooltip."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="{kind}"><title>{escape(tooltip)}</title></circle>'


def shortened(words: str, most: int) -> str:
    """Return words cut to at most `most` characters.

    >>> shortened("native-country", 9)
    'native-c…'
    """
    return words if len(words) <= most else words[: most - 1] + "…"


def ticks(top: float, about: int = 4) -> list[float]:
    """Return round places from 0 to `top`, about `about` of them.

    >>> ticks(0.47), ticks(23), ticks(0)
    ([0.0, 0.1, 0.2, 0.3, 0.4], [0.0, 5.0, 10.0, 15.0, 20.0], [0.0])
    """
    if top <= 0:
        return [0.0]
    step = nice(top / about)
    return [round(step * i, 10) for i in range(floor(top / step + 1e-9) + 1)]


def nice(width: float) -> float:
    """Return the number nearest to `width` among 1, 2, 5, 10 times a power of ten.

    >>> nice(0.12), nice(5.75), nice(38)
    (0.1, 5.0, 50.0)
    """
    power = 10.0 ** floor(log10(width))
    return power * min((1, 2, 5, 10), key=lambda n: abs(log10(n * power / width)))
