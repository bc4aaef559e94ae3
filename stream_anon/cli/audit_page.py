"""The page of an audit: the verdict on each promise first, then group sizes, risk, loss and delay where known."""

from __future__ import annotations

from collections.abc import Iterator

from stream_anon.auditor.attacks.chance import Chance
from stream_anon.auditor.checks import Check
from stream_anon.auditor.result import AuditResult
from stream_anon.report import Page, Risk
from stream_anon.report.charts import percent
from stream_anon.report.parts import Part, Table, Tile, Tone, Verdict, Verdicts
from stream_anon.report.result import loss_chart, risk_chart, size_chart


def page(result: AuditResult, step: str) -> Page:
    """Build the page of an audit."""
    judged = result.k_counts == "people"
    verdict = ("passed" if result.passed else "FAILED") + ("" if judged else ", people not judged")
    under = f"judged by policy {result.policy}" if result.policy else "judged by what they say of themselves"
    lead = f"{result.records:,} records of {result.source}, {under}."
    if not judged:
        lead = f"People were not judged: no subject is declared, so k counted records. {lead}"
    return Page(f"Audit: {verdict}", lead, tuple(_tiles(result)), tuple(_parts(result)), f"N{step[1:]}")


def _tiles(result: AuditResult) -> Iterator[Tile]:
    broken = sum(not check.kept for check in result.checks)
    if broken:
        yield Tile("Promises", f"{broken} broken", f"of {len(result.checks)} judged", "bad")
    else:
        yield Tile("Promises", f"{len(result.checks)} kept", "all that were judged", "good")
    yield Tile("Records", f"{result.records:,}", f"in {result.groups:,} groups")
    if not result.records:
        return
    required, judged = result.required, result.k_counts == "people"
    enough = required is None or result.fewest >= required
    need = "as declared" if required is None else f"required: {required:,}"
    tone: Tone = "plain" if required is None else "bad" if not enough else "good" if judged else "warn"
    yield Tile("Smallest group", f"{result.fewest:,} {result.k_counts}", need, tone)
    if result.chance is None:
        yield Tile("People and risk", "not judged", "no subject is declared", "warn")
    else:
        before = f"before: {percent(result.raw.chance.highest)}" if result.raw and result.raw.chance else ""
        yield Tile("Highest risk", percent(result.chance.highest), before, tone)
    if result.loss is not None:
        yield Tile("Information lost", percent(result.loss), f"{percent(0)} is exact")
    if result.raw is not None:
        yield Tile("Made of raw rows", f"{result.raw.matched:,}", f"of {result.records:,} records",
                   "good" if result.raw.matched == result.records else "bad")  # fmt: skip
    if result.raw is not None and result.raw.longest_delay is not None:
        longest, bound = result.raw.longest_delay, result.max_delay
        late = bound is not None and longest > bound
        remark = "by the topics' times" if bound is None else f"bound: {bound:.3g} s from receipt"
        yield Tile("Longest delay", f"{longest:.3g} s", remark, "warn" if late else "plain")


def _parts(result: AuditResult) -> Iterator[Part]:
    verdicts = [Verdict(check.promise, check.kept, _found(check, result)) for check in result.checks]
    yield Verdicts("Promises", "Groups are named by their ids; no value of a record is shown.", tuple(verdicts))
    if result.findings:
        yield _places(result)
    if result.notes:
        caption = "Neither kept nor broken: these records do not tell."
        yield Table("Not judged", caption, ("remark",), tuple((note,) for note in result.notes))
    k = result.required
    if k is None or not result.records:
        return
    yield size_chart(result.sizes if result.people is None else result.people, k, result.k_counts)
    if result.chance is not None:
        before = result.raw.chance if result.raw else None
        alike = " Among the people of one group; groups that look the same would lower it."
        yield risk_chart(_risk(before) if before else None, _risk(result.chance), k, alike)
    if result.losses and result.loss is not None:
        yield loss_chart(result.losses, result.loss)
    if result.linkage:
        yield Table(
            "Tokens",
            "In how many groups one token is found: whoever sees it there knows that one person is in all of them.",
            ("attribute", "tokens", "groups at most", "on average"),
            tuple(
                (name, f"{links.tokens:,}", f"{links.largest:,}", f"{links.mean:.2f}")
                for name, links in result.linkage.items()
            ),
        )
    if result.sensitive:
        yield Table(
            "Sensitive attributes",
            "The worst group of each: fewest values, how many equally frequent ones they are worth, largest share.",
            ("attribute", "values", "worth", "largest share"),
            tuple(
                (name, f"{worst.distinct:,}", f"{worst.effective:.2f}", percent(worst.share))
                for name, worst in result.sensitive.items()
            ),
        )


def _places(result: AuditResult) -> Table:
    """List the groups and lines in which something was found, each with all that is wrong there."""
    wrong: dict[str, list[str]] = {}
    for finding in result.findings:
        for place in (*(f"group {group}" for group in finding.groups), *(f"line {line}" for line in finding.lines)):
            of = f" ({', '.join(finding.columns)})" if finding.columns else ""
            wrong.setdefault(place, []).append(f"{finding.code}{of}")
    caption = "The first places of each finding; the codes are explained in docs/audit.md."
    return Table("Where to look", caption, ("place", "findings"), tuple((at, ", ".join(w)) for at, w in wrong.items()))


def _found(check: Check, result: AuditResult) -> str:
    """Return what broke the promise, or how near the worst group comes to it."""
    if check.broken:
        return "; ".join(map(str, check.broken))
    worst = result.sensitive.get(check.attribute)
    match check.codes:
        case ("k_anonymity",):
            return f"{result.fewest:,} at the least"
        case ("t_closeness",) if worst and worst.distance is not None:
            return f"at most {worst.distance:.3f} away"
        case ("guarding_node",) if result.raw and result.raw.largest_breach is not None:
            return f"at most {percent(result.raw.largest_breach)}"
        case _ if worst:
            return f"at least {worst.distinct:,} values, the largest share {percent(worst.share)}"
        case ("not-in-raw", _) if result.raw:
            return f"{result.records:,} records, {result.raw.raw_rows:,} raw rows"
        case ("people",) if result.raw:
            return f"{result.raw.determined:,} groups certain, the others possible"
    return ""


def _risk(chance: Chance) -> Risk:
    return Risk(chance.highest, chance.mean, chance.above)
