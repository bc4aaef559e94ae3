"""Turn a run into the figures of a page, and into a few lines for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from stream_anon.cli import output
from stream_anon.core.decode import LineCount
from stream_anon.core.gate import Group
from stream_anon.insight.risk import classes_after, classes_before
from stream_anon.local.simulation import GRAINS
from stream_anon.observe.tally import Delays, Tally, smallest_group
from stream_anon.report import Delay, Result, Risk
from stream_anon.report.result import NO_SUBJECT

STEPS = 24
"""Columns of the delay's histogram up to the bound."""

_BAR = 30


def result_of(tally: Tally, groups: Sequence[Group], bound: float | None = None) -> Result:
    """Return the figures of a run for a page; `bound` is None where nothing waits."""
    return result_told(tally, [classes_told(groups)], bound)


def classes_told(groups: Sequence[Group]) -> dict[str, list[tuple[int, int]]]:
    """Return what a page tells of groups as counts: of parts they add up, as nobody is in two.

    `sizes`: how many groups have so many people. `before` and `after`: how many records look the same as those of so
    many people, by what came and by what is published. A class that lies in two parts is counted in each: risk may
    seem higher than it is, not lower.
    """
    sizes = Counter(group.people for group in groups)
    found = {"before": Counter[int](), "after": Counter[int]()}
    for name, classes in (("before", classes_before(groups)), ("after", classes_after(groups))):
        for people, records in classes:
            found[name][people] += records
    return {name: sorted(counts.items()) for name, counts in {"sizes": sizes, **found}.items()}


def result_told(
    tally: Tally, told: Sequence[Mapping[str, Sequence[tuple[int, int]]]], bound: float | None = None
) -> Result:
    """Return the figures of a run from what was told of the groups of its parts."""
    sizes, before, after = (_added(part[name] for part in told) for name in ("sizes", "before", "after"))
    return Result(
        records=tally.consumed,
        published=tally.published,
        suppressed=tally.suppressed,
        rejected=tally.rejected.total(),
        k=tally.k,
        counts=tally.counts,
        loss=tally.loss,
        losses=tally.losses,
        sizes=sizes,
        before=Risk.of(before.items(), tally.k),
        after=Risk.of(after.items(), tally.k),
        delay=None if bound is None else _delay(tally.delays, bound),
    )


def _added(counts: Iterable[Sequence[tuple[int, int]]]) -> dict[int, int]:
    """Return counts of parts together, ascending."""
    found = Counter[int]()
    for part in counts:
        found.update(dict(part))
    return dict(sorted(found.items()))


def _delay(delays: Delays, bound: float) -> Delay:
    slack = bound * (1 + 1.01 / GRAINS)  # within a grain, the simulated clock cannot tell the moment of a group
    longest = bound if bound < delays.max <= slack else delays.max
    end = max(bound, longest)
    edges = [end * (i + 1) / STEPS for i in range(STEPS)]
    up_to = [*(delays.within(edge) for edge in edges[:-1]), delays.count]
    counts = [count - before for count, before in zip(up_to, [0, *up_to], strict=False)]
    return Delay(bound, min(delays.mean, longest), longest, tuple(zip(edges, counts, strict=True)))


def as_data(result: Result) -> dict[str, Any]:
    """Return the figures as plain data."""
    risk = {
        name: {"highest": round(r.highest, 5), "mean": round(r.mean, 5), "above_1_over_k": round(r.above, 5)}
        for name, r in (("before", result.before), ("after", result.after))
    }
    found: dict[str, Any] = {
        "records": result.records,
        "published": result.published,
        "suppressed": result.suppressed,
        "rejected": result.rejected,
        **smallest_group(min(result.sizes, default=0), result.k, result.counts),
        "group_sizes": {str(size): count for size, count in result.sizes.items()},
        "loss": round(result.loss, 5),
        "loss_per_attribute": {name: round(loss, 5) for name, loss in result.losses.items()},
        "risk": risk,
    }
    if result.delay is not None:
        delay = result.delay
        found["delay"] = {"bound": delay.bound, "mean": round(delay.mean, 4), "longest": round(delay.longest, 4)}
    return found


def lines_of(result: Result) -> Iterator[Text]:
    """Yield the figures, a line each, losses with bars."""
    yield Text(
        f"{result.records:,} records: {result.published:,} published in {sum(result.sizes.values()):,} groups, "
        f"{result.suppressed:,} suppressed, {result.rejected:,} rejected"
    )
    if not result.published:
        return
    yield Text(f"information lost: {result.loss:.1%}{whole(result.suppressed)}", style="bold")
    width = max(map(len, result.losses))
    for name, loss in result.losses.items():
        full = round(loss * _BAR)
        yield Text.assemble(f"  {name:<{width}}  ", ("█" * full, "cyan"), ("░" * (_BAR - full), "dim"), f" {loss:6.1%}")
    yield Text(
        f"group sizes: {min(result.sizes):,} to {max(result.sizes):,} {result.counts}, "
        f"{_middle(result.sizes):,} in the middle; "
        f"required {result.k:,}"
    )
    before, after = result.before, result.after
    yield Text(
        f"re-identification risk: highest {before.highest:.1%} → {after.highest:.1%}, "
        f"average {before.mean:.1%} → {after.mean:.1%}, "
        f"records above 1/k {before.above:.1%} → {after.above:.1%}"
    )
    if result.counts == "records":
        yield Text(NO_SUBJECT, style="yellow")
    if result.delay is not None:
        delay = result.delay
        yield Text(f"delay: {delay.mean:.3g} s on average, {delay.longest:.3g} s at most; bound {delay.bound:.3g} s")


def whole(suppressed: int) -> str:
    """Return a remark on how a loss over all records counts those that were suppressed."""
    return ", suppressed records counted as lost whole" if suppressed else ""


def lines_in_words(lines: LineCount | dict[str, int] | None) -> str:
    """Return in words where the physical lines of an input went, so that anybody can add them up.

    >>> lines_in_words(LineCount(read=12, header=1, blank=1, continued=2))
    '12 lines: 1 of the header, 1 blank, 8 records, 2 more lines of records that go over several'
    """
    if lines is None:
        return ""
    count = LineCount(**lines) if isinstance(lines, dict) else lines
    parts = [f"{count.header:,} of the header"] if count.header else []
    parts += [f"{count.blank:,} blank"] if count.blank else []
    parts.append(f"{count.records():,} records")
    parts += [f"{count.continued:,} more lines of records that go over several"] if count.continued else []
    return f"{count.read:,} lines: {', '.join(parts)}"


def raised_in_words(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield what guarding nodes cost: values that were published as one of their ancestors."""
    for name, count in summary["raised"].items():
        lost = summary["loss_of_sensitive"][name]
        yield f"{name}: raised in {count:,} records, as guarding nodes ask; lost by it: {lost:.3f}"


def audit_of(out: Path | str, policy: Path | str, data: Path | str, encoding: str | None = None) -> str:
    """Return the command that audits what was published."""
    return f"stream-anon audit {output.quoted(out)} -p {output.quoted(policy)} --raw {output.table(data, encoding)}"


def _middle(sizes: dict[int, int] | Any) -> int:
    """Return the median size of groups."""
    half, seen = sum(sizes.values()) / 2, 0
    for size in sorted(sizes):
        seen += sizes[size]
        if seen >= half:
            break
    return int(size)
