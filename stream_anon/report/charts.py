"""SVG drawings, one function per kind of chart, each with the same numbers as table rows for screen readers."""

from __future__ import annotations

from math import ceil, floor

from stream_anon.report.parts import Bars, Curves, Histogram, Pairs
from stream_anon.report.svg import WIDTH, bar, dot, line, nice, path, shortened, svg, text, ticks

Rows = list[tuple[str, ...]]

_LEFT = 184
"""Where bars begin: labels stand before them, at most `_LETTERS` letters long."""
_LETTERS = 17
_RIGHT = 70
_PERCENT = "\u202f%"  # a space at which no line breaks


def bars(chart: Bars) -> tuple[str, Rows]:
    """Draw one horizontal bar per share, on a track that stands for the whole."""
    room, marks = WIDTH - _LEFT - _RIGHT, []
    for i, each in enumerate(chart.bars):
        y = 8 + i * 30
        marks += [
            text(_LEFT - 12, y + 14, shortened(each.label, _LETTERS), "label", "end"),
            bar(_LEFT, y, room, 18, "track"),
            bar(_LEFT, y, room * min(each.share, 1), 18, "first", f"{each.label}: {each.text}"),
            text(WIDTH - _RIGHT + 10, y + 14, each.text, "number"),
        ]
    drawing = svg(16 + 30 * len(chart.bars), chart.title, chart.caption, marks)
    return drawing, [("", "share"), *((each.label, each.text) for each in chart.bars)]


def pairs(chart: Pairs) -> tuple[str, Rows]:
    """Draw two bars per line, before and after, with a dashed line at the target."""
    room, marks = WIDTH - _LEFT - _RIGHT, []
    height = 34 + 58 * len(chart.pairs)
    for i, each in enumerate(chart.pairs):
        y = 34 + i * 58
        marks.append(text(_LEFT - 12, y + 24, shortened(each.label, _LETTERS), "label", "end"))
        for offset, kind, word, share in ((0, "before", "before", each.before), (20, "first", "after", each.after)):
            marks += [
                bar(_LEFT, y + offset, room, 17, "track"),
                bar(_LEFT, y + offset, room * min(share, 1), 17, kind, f"{each.label}, {word}: {percent(share)}"),
                text(WIDTH - _RIGHT + 10, y + offset + 13, percent(share), "number"),
            ]
    for i, (kind, word) in enumerate((("before", "before"), ("first", "after"))):
        marks += [bar(_LEFT + i * 80, 6, 12, 12, kind), text(_LEFT + i * 80 + 18, 16, word, "small")]
    if chart.mark:
        x = _LEFT + room * chart.mark.at
        marks += [line(x, 26, x, height - 6, "mark"), text(x + 6, 16, chart.mark.label, "small") if x > 330 else ""]
        marks += [] if x > 330 else [text(_LEFT + 170, 16, f"┆ {chart.mark.label}", "small")]
    drawing = svg(height, chart.title, chart.caption, marks)
    return drawing, [("", "before", "after"), *((p.label, percent(p.before), percent(p.after)) for p in chart.pairs)]


def histogram(chart: Histogram) -> tuple[str, Rows]:
    """Draw columns over an axis, with a dashed line at the mark."""
    left, right, top, height = 60, 14, 30, 250
    bottom = height - 42
    low, high = chart.bins[0].low, chart.bins[-1].high
    if chart.mark:
        low, high = min(low, chart.mark.at), max(high, chart.mark.at)
    low -= (high - low) * 0.06 if chart.mark and low == chart.mark.at else 0
    high += (high - low) * 0.02 or 1.0
    most = max((each.count for each in chart.bins), default=1) or 1

    def across(value: float) -> float:
        return left + (value - low) / (high - low) * (WIDTH - left - right)

    def up(count: float) -> float:
        return bottom - count / most * (bottom - top)

    marks = [mark for at in ticks(most) for mark in _level(left, right, up(at), f"{at:,.0f}")]
    for each in chart.bins:
        x, end = across(each.low), across(each.high)
        tooltip = f"{each.label}: {each.count:,} {chart.counted}"
        marks.append(bar(x + 0.75, up(each.count), end - x - 1.5, bottom - up(each.count), "first", tooltip))
    marks += [text(across(at), bottom + 18, f"{at:g}", "small", "middle") for at in _between(low, high)]
    marks.append(text((left + WIDTH - right) / 2, height - 4, chart.axis, "small", "middle"))
    if chart.mark:
        x = across(chart.mark.at)
        side = "end" if x > WIDTH / 2 else "start"
        marks += [line(x, top - 16, x, bottom, "mark")]
        marks += [text(x + (-7 if side == "end" else 7), top - 8, chart.mark.label, "strong", side)]
    rows: Rows = [(chart.axis, chart.counted), *((each.label, f"{each.count:,}") for each in chart.bins)]
    return svg(height, chart.title, chart.caption, marks), rows


def curves(chart: Curves) -> tuple[str, Rows]:
    """Draw curves with a dot per measurement; x values are spaced equally, in their order."""
    left, right, top, height = 60, 20, 16, 300
    bottom = height - 46
    places = sorted({x for series in chart.series if not series.level for x, _ in series.points}) or [0.0]
    step = (WIDTH - left - right - 60) / max(len(places) - 1, 1)

    def across(value: float) -> float:
        return left + 30 + places.index(value) * step if len(places) > 1 else (left + WIDTH - right) / 2

    def up(value: float) -> float:
        return bottom - min(value / chart.top, 1) * (bottom - top)

    marks = [mark for at in ticks(chart.top) for mark in _level(left, right, up(at), f"{at * 100:g}{_PERCENT}")]
    marks += [text(across(x), bottom + 18, f"{x:g}", "small", "middle") for x in places]
    marks.append(text((left + WIDTH - right) / 2, height - 6, chart.across, "small", "middle"))
    rows: Rows = [("", chart.across, chart.up)]
    for i, series in enumerate(chart.series):
        kind = f"series s{i % 6}"
        if series.level:
            y = up(series.points[0][1])
            marks.append(line(left, y, WIDTH - right, y, f"{kind} level"))
            rows.append((series.name, "any", percent(series.points[0][1])))
            continue
        drawn = [(across(x), up(y)) for x, y in series.points]
        marks.append(path(drawn, kind))
        for (x, y), (value, height_) in zip(drawn, series.points, strict=True):
            marks.append(dot(x, y, f"dot s{i % 6}", f"{series.name} at {value:g}: {percent(height_)}"))
            rows.append((series.name, f"{value:g}", percent(height_)))
    return svg(height, chart.title, chart.caption, marks), rows


def percent(share: float) -> str:
    r"""Format a share as a percentage: one decimal, more only for very small shares.

    >>> percent(0.1034), percent(1.0), percent(0.0004), percent(0)
    ('10.3\u202f%', '100\u202f%', '0.04\u202f%', '0\u202f%')
    """
    if share in (0, 1):
        return f"{share * 100:.0f}{_PERCENT}"
    return f"{share * 100:.1f}{_PERCENT}" if share >= 0.001 else f"{share * 100:.2g}{_PERCENT}"


def _level(left: float, right: float, y: float, label: str) -> list[str]:
    return [line(left, y, WIDTH - right, y, "grid"), text(left - 8, y + 4, label, "small", "end")]


def _between(low: float, high: float) -> list[float]:
    """Return round places on an axis that need not begin at 0."""
    step = nice((high - low) / 6)
    places = [round(step * i, 10) for i in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]
    return places if step >= 1 or low == 0 else [at for at in places if at == int(at)]
