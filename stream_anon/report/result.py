"""The result of anonymizing as numbers, and the page that shows it: risk, loss, sizes of groups, delay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from stream_anon.report.charts import percent
from stream_anon.report.parts import (
    Bar,
    Bars,
    Bin,
    Curves,
    Histogram,
    Mark,
    Page,
    Pair,
    Pairs,
    Part,
    Series,
    Tile,
    Tone,
)

COLUMNS = 24
"""Columns of a histogram: enough to show a shape, few enough to point at."""

FEWEST = 12
"""Columns that even groups of one size get, so that a column looks like one."""

HIGH_LOSS = 0.5
"""Above this, half of the information in the quasi-identifiers is lost: review the policy."""

MUCH_SUPPRESSED = 0.02

NO_SUBJECT = "people not judged: the policy names no subject, so records were counted; one person may have several"
"""Said wherever k counted records: a group of k records may be one person alone."""

AT_LEAST = " At least: each record was counted as another person's, for the policy names no subject."


@dataclass(frozen=True, slots=True)
class Risk:
    """The chance to find the record of a given person: 1 over the people who look the same.

    The highest, the average over records, and the share of records whose risk is above 1/k.
    """

    highest: float
    mean: float
    above: float

    @classmethod
    def of(cls, classes: Iterable[tuple[int, int]], k: int) -> Risk:
        """Compute the risk of classes of records that look the same, given as (people, records) pairs.

        >>> Risk.of([(1, 1), (4, 5)], k=2)
        Risk(highest=1.0, mean=0.375, above=0.16666666666666666)
        """
        found = list(classes)
        records = sum(count for _, count in found)
        if not records:
            return cls(0.0, 0.0, 0.0)
        mean = sum(count / people for people, count in found) / records
        above = sum(count for people, count in found if people < k) / records
        return cls(1 / min(people for people, _ in found), mean, above)


@dataclass(frozen=True, slots=True)
class Delay:
    """How long records waited, in seconds, against the bound; `waits` are (up to, how many) steps of equal width."""

    bound: float
    mean: float
    longest: float
    waits: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class Result:
    """Everything the page shows; shares are 0 to 1.

    `sizes` are people per group and how many groups have so many; records where the policy names no subject (`counts`).
    """

    records: int
    published: int
    suppressed: int
    rejected: int
    k: int
    counts: str
    loss: float
    losses: Mapping[str, float]
    sizes: Mapping[int, int]
    before: Risk
    after: Risk
    delay: Delay | None = None


def page_of(result: Result, title: str, lead: str, extra: Iterable[Tile] = (), foot: str = "") -> Page:
    """Build the page about one result."""
    return Page(title, lead, (*tiles_of(result), *extra), tuple(core_of(result)), foot)


def tiles_of(result: Result) -> Iterator[Tile]:
    """Build the figures to read first."""
    out = result.records or 1
    kept = f"{percent(result.published / out)} of {result.records:,} records"
    withheld = result.suppressed + result.rejected
    yield Tile("Published", f"{result.published:,}", kept)
    yield Tile(
        "Withheld", f"{withheld:,}", f"{result.suppressed:,} suppressed, {result.rejected:,} rejected",
        "warn" if withheld / out > MUCH_SUPPRESSED else "plain",
    )  # fmt: skip
    if not result.published:
        return
    smallest = min(result.sizes)
    judged = result.counts == "people"
    enough: Tone = "bad" if smallest < result.k else "good" if judged else "warn"
    yield Tile("Smallest group", f"{smallest:,} {result.counts}", f"required: {result.k:,}", enough)
    if not judged:
        yield Tile("People", "not judged", "the policy names no subject", "warn")
    yield Tile(
        "Highest risk", _risk(result.after.highest, judged), f"before: {_risk(result.before.highest, judged)}",
        "bad" if result.after.highest > 1 / result.k else "good" if judged else "warn",
    )  # fmt: skip
    lost = percent(result.loss)
    yield Tile("Information lost", lost, f"{percent(0)} is exact", "warn" if result.loss > HIGH_LOSS else "plain")
    if result.delay is not None:
        kept_time = result.delay.longest <= result.delay.bound
        yield Tile(
            "Longest delay", f"{result.delay.longest:.3g} s", f"bound: {result.delay.bound:.3g} s",
            "good" if kept_time else "bad",
        )  # fmt: skip


def _risk(share: float, judged: bool) -> str:
    return percent(share) if judged else f"at least {percent(share)}"


def core_of(result: Result) -> Iterator[Part]:
    """Build the charts; none if nothing was published."""
    if not result.published:
        return
    alike = "" if result.counts == "people" else AT_LEAST
    yield risk_chart(result.before, result.after, result.k, alike)
    yield loss_chart(result.losses, result.loss)
    yield size_chart(result.sizes, result.k, result.counts)
    if result.delay is not None:
        yield _delays(result.delay)


def risk_chart(before: Risk | None, after: Risk, k: int, alike: str = "") -> Pairs | Bars:
    """Draw the risk against 1/k, beside that of the raw records if known; `alike` says among whom."""
    title = "Re-identification risk"
    caption = (
        f"The chance to pick the right record of a person whose quasi-identifiers one knows. Wanted: at most 1/k = "
        f"{percent(1 / k)}.{alike}"
    )
    names = {"highest": "highest", "mean": "average", "above": "records above 1/k"}
    if before is None:
        shares = [(label, getattr(after, name)) for name, label in names.items()]
        return Bars(title, caption, tuple(Bar(label, share, percent(share)) for label, share in shares))
    pairs = tuple(Pair(label, getattr(before, name), getattr(after, name)) for name, label in names.items())
    return Pairs(title, caption, pairs, Mark(1 / k, f"1/k = {percent(1 / k)}"))


def loss_chart(losses: Mapping[str, float], loss: float) -> Bars:
    """Draw what each attribute lost, the worst first."""
    worst = sorted(losses.items(), key=lambda item: -item[1])
    return Bars(
        "Information lost per attribute",
        f"{percent(0)} is published unchanged, {percent(1)} reveals nothing. Overall: {percent(loss)}.",
        tuple(Bar(name, share, percent(share)) for name, share in worst),
    )


def distribution_charts(found: Iterable[tuple[str, Sequence[float], Sequence[float], float]]) -> Iterator[Curves]:
    """Draw how the rows lie along the scale of each attribute, before and after; cells have numbers, never values."""
    for name, before, after, moved in found:
        series = tuple(
            Series(word, tuple((float(cell + 1), float(share)) for cell, share in enumerate(shares)))
            for word, shares in (("before", before), ("after", after))
        )
        caption = f"Shares of the records along its scale, in cells of equal width; {percent(moved)} lie elsewhere."
        top = 1.08 * max(*before, *after)
        yield Curves(f"Distribution of {name}", caption, "cell, from the lowest", "share", series, top)


def size_chart(sizes: Mapping[int, int], k: int, counts: str) -> Histogram:
    """Draw how many groups have how many people (or records, as `counts` says), against k."""
    return Histogram(
        "Group sizes",
        f"{counts.capitalize()} per group in {sum(sizes.values()):,} groups; none may be smaller than k.",
        f"{counts} in a group",
        "groups",
        size_bins(sizes, k),
        Mark(k - 0.5, f"k = {k:,}"),
    )


def _delays(delay: Delay) -> Histogram:
    low, bins = 0.0, []
    for up_to, count in delay.waits:
        bins.append(Bin(low, up_to, count, f"{low:.3g} to {up_to:.3g} s"))
        low = up_to
    return Histogram(
        "Delay",
        f"How long records waited: {delay.mean:.3g} s on average, {delay.longest:.3g} s at most.",
        "seconds",
        "records",
        tuple(bins),
        Mark(delay.bound, f"bound {delay.bound:.3g} s"),
    )


def size_bins(sizes: Mapping[int, int], k: int) -> tuple[Bin, ...]:
    """Sort groups by people into bins of equal width from k on; the largest hundredth falls into the last bin.

    >>> [(bin.label, bin.count) for bin in size_bins({5: 3, 7: 1}, 5)][:3]
    [('5', 3), ('6', 0), ('7', 1)]
    """
    lowest, largest, total = min(k, *sizes), max(sizes), sum(sizes.values())
    seen, common = 0, lowest
    for size in sorted(sizes):
        seen, common = seen + sizes[size], size
        if seen >= 0.99 * total:
            break
    width = max(1, ceil((common - lowest + 1) / COLUMNS))
    steps = max((common - lowest) // width + 1, FEWEST)
    counts = [0] * steps
    for size, count in sizes.items():
        counts[min((size - lowest) // width, steps - 1)] += count
    bins = []
    for i, count in enumerate(counts):
        first, last = lowest + i * width, lowest + (i + 1) * width - 1
        last = largest if i == steps - 1 and largest > last else last
        bins.append(
            Bin(first - 0.5, first + width - 0.5, count, f"{first:,}" if first == last else f"{first:,} to {last:,}")
        )
    return tuple(bins)
