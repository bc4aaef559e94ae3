"""The page of attacks: what each achieves on the raw and on the published records, and where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stream_anon.auditor.attacks.attacks import AttackResult
from stream_anon.cli.provenance import provenance
from stream_anon.core.schema import Schema
from stream_anon.report import Page
from stream_anon.report.charts import percent
from stream_anon.report.parts import Mark, Pair, Pairs, Part, Table, Tile


def page(result: AttackResult, schema: Schema, files: Sequence[tuple[str, Path]]) -> Page:
    """Build the page of attacks on published records."""
    raw, published = result.highest_chance
    allowed = 1 / result.k
    tiles = (
        Tile("Records", f"{result.records:,}", f"of {result.raw_rows:,} raw ones"),
        Tile("Best chance, raw", percent(raw), "to recognise a record"),
        Tile(
            "Best chance, published",
            percent(published),
            f"1/k is {percent(allowed)}",
            "good" if published <= allowed + 1e-9 else "bad",
        ),
    )
    pairs = [Pair(_name(each.name, each.attribute), each.before, each.after) for each in result.attacks]
    mark = Mark(allowed, f"1/k = {percent(allowed)}")
    parts: list[Part] = [
        Pairs("Attacks", "The share of records on which each succeeds, before and after.", tuple(pairs), mark),
        Table(
            "What each attack does",
            "Success is measured with the raw records, which an attacker does not have.",
            ("attack", "raw", "published", "succeeds where"),
            tuple(
                (_name(each.name, each.attribute), percent(each.before), percent(each.after), each.meaning)
                for each in result.attacks
            ),
        ),
    ]
    if result.measured:
        rows = [
            (
                _name(each.name, each.attribute),
                f"{each.tried:,}",
                percent(each.share),
                _guess(each.baseline),
                each.meaning,
            )
            for each in result.measured
        ]
        header = ("attack", "tried", "succeeds", "a guess", "succeeds where")
        parts.append(Table("Beyond single groups", "Each beside what a guess achieves.", header, tuple(rows)))
    lead = "What the known attacks achieve on the raw and on the published records."
    return Page("Attacks", lead, tiles, (*parts, *provenance(schema, files)), " ".join(result.notes))


def _name(name: str, attribute: str) -> str:
    return f"{name} ({attribute})" if attribute else name


def _guess(baseline: float | None) -> str:
    return "" if baseline is None else percent(baseline)
