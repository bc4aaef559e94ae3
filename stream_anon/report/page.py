"""Render a page as one HTML file: style and drawings inside, readable in light, dark, print and by screen readers."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from stream_anon.report import charts
from stream_anon.report.parts import Bars, Curves, Histogram, Page, Pairs, Part, Table, Tile, Verdicts

_TONES = {"plain": "", "good": "✓ ", "warn": "! ", "bad": "✗ "}


_NONE = ("", "none", "any")
"""What stands among numbers where there is none."""


def render(page: Page) -> str:
    """Return the text of the HTML file."""
    style = (files(__package__) / "style.css").read_text(encoding="utf-8")
    tiles = "".join(map(_tile, page.tiles))
    parts = "".join(map(_part, page.parts))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(page.title)} · stream-anon</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<header><p class=brand>stream-anon</p><h1>{escape(page.title)}</h1><p class=lead>{escape(page.lead)}</p>"
        f"</header>\n<main>\n<section class=tiles aria-label=Summary>{tiles}</section>\n"
        f"<div class=parts>{parts}</div>\n</main>\n<footer><p>{escape(page.foot)}</p></footer>\n</body>\n</html>\n"
    )


def _tile(tile: Tile) -> str:
    note = f"<p class=note>{_TONES[tile.tone]}{escape(tile.note)}</p>" if tile.note else ""
    return (
        f'<div class="tile {tile.tone}"><p class=name>{escape(tile.label)}</p>'
        f"<p class=value>{escape(tile.value)}</p>{note}</div>"
    )


def _part(part: Part) -> str:
    heading = f"<h2>{escape(part.title)}</h2><p class=caption>{escape(part.caption)}</p>"
    match part:
        case Table():
            return f"<section class='card wide'>{heading}{_table(part.header, part.rows)}</section>"
        case Verdicts():
            lines = "".join(
                f'<li class="{"good" if each.kept else "bad"}"><b>{"✓ kept" if each.kept else "✗ BROKEN"}</b>'
                f"<span>{escape(each.promise)}</span><span class=note>{escape(each.found)}</span></li>"
                for each in part.verdicts
            )
            return f"<section class='card wide'>{heading}<ul class=verdicts>{lines}</ul></section>"
        case Bars():
            drawing, rows = charts.bars(part)
        case Pairs():
            drawing, rows = charts.pairs(part)
        case Histogram():
            drawing, rows = charts.histogram(part)
        case Curves():
            drawing, rows = charts.curves(part)
            drawing += _legend(part)
    numbers = _table(rows[0], tuple(rows[1:]))
    return (
        f"<section class=card>{heading}<figure>{drawing}</figure>"
        f"<details><summary>The numbers</summary>{numbers}</details></section>"
    )


def _legend(part: Curves) -> str:
    entries = "".join(
        f'<li><i class="swatch s{i % 6}{" level" if series.level else ""}"></i>{escape(series.name)}</li>'
        for i, series in enumerate(part.series)
    )
    return f"<ul class=legend>{entries}</ul>"


def _table(header: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> str:
    """Render a table; a column whose entries all begin with a digit, where there are any, is of numbers."""
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    numbers = [any(cells) and all(cell[:1].isdigit() or cell in _NONE for cell in cells) for cells in columns]

    def line(cells: tuple[str, ...], tag: str) -> str:
        marked = zip(cells, numbers, strict=True)
        return "".join(f"<{tag}{' class=n' if number else ''}>{escape(cell)}</{tag}>" for cell, number in marked)

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return f"<div class=scroll><table><thead><tr>{line(header, 'th')}</tr></thead><tbody>{body}</tbody></table></div>"
