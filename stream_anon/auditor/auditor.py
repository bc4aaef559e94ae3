"""The audit from end to end: read records, judge groups as they become complete, and return one result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from stream_anon.auditor.checks import checks
from stream_anon.auditor.findings import Findings
from stream_anon.auditor.groups import Judge, without_repeats
from stream_anon.auditor.linkage import Links
from stream_anon.auditor.numbers import Numbers, Rows
from stream_anon.auditor.policy import Rules
from stream_anon.auditor.pool import IN_MEMORY, Closed, Pool, whole_groups
from stream_anon.auditor.raw.against import Compared, compare
from stream_anon.auditor.raw.original import Original
from stream_anon.auditor.reading.chunks import Chunk
from stream_anon.auditor.reading.files import read_chunks
from stream_anon.auditor.result import AuditResult, SensitiveMeasure

_SHOWN, _TOLD = 5, 20


class Auditor:
    """An audit in progress: feed it chunks, then ask for the result.

    `live`: groups are judged as soon as they are whole, and what is incomplete at the end is open, not wrong.
    `repeats`: the reader sees uncommitted records, among which an aborted transaction may show a record twice.
    """

    def __init__(
        self,
        rules: Rules | None,
        findings: Findings,
        original: Original | None = None,
        live: bool = False,
        repeats: bool = False,
        in_memory: int = IN_MEMORY,
    ) -> None:
        self._rules, self._findings, self._original, self._live = rules, findings, original, live
        self._numbers = Numbers(rules, findings, keep=original is not None)
        self._judge = Judge(rules, findings)
        self._links = Links(rules)
        self._pool, self._closed = Pool(in_memory, repeats), Closed()
        self._all: list[Rows] = []
        self._repeats = repeats
        self._open = self._repeated = 0
        self._topic = False

    def add(self, chunk: Chunk) -> None:
        """Add more records to the audit."""
        if not len(chunk):
            return
        self._topic |= chunk.times is not None
        rows = self._numbers.rows(chunk)
        if self._live:
            again = self._closed.contains(rows["group"])
            if not self._repeats:
                self._findings.note("row-twice", np.unique(rows["group"][again]))
            self._repeated += int(again.sum()) if self._repeats else 0
            rows = rows[~again]
        self._pool.add(rows)
        whole = self._pool.whole() if self._live else None
        if whole is not None:
            self._settle(whole)
            self._closed.add(np.unique(whole["group"]))

    def _settle(self, rows: Rows) -> None:
        if self._repeats:
            count, rows = len(rows), without_repeats(rows)
            self._repeated += count - len(rows)
        self._judge(rows)
        self._links.add(rows)
        if self._original is not None:
            self._all.append(rows)

    def result(self, source: str) -> AuditResult:
        """Judge the groups that are left, compare with the raw table, and return the result."""
        for rows in self._pool.rest():
            if self._live or self._repeats:
                whole = whole_groups(rows, self._repeats)
                self._open += int((~whole).sum())
                rows = rows[whole]
            if len(rows):
                self._settle(rows)
        compared = self._compare()
        seen, numbers, rules, findings = self._judge.seen, self._numbers, self._rules, self._findings.all()
        classes, smallest = self._judge.classes()
        loss, counted = numbers.losses.tolist()
        judged = not seen.uncounted and (rules is None or rules.subject is not None)
        measures = {
            name: SensitiveMeasure(
                seen.fewest_values[name],
                round(seen.least_effective[name], 6),
                round(seen.largest_share[name], 6),
                seen.farthest.get(name),
            )
            for name in seen.fewest_values
        }
        return AuditResult(
            source=source,
            policy=rules.name if rules else None,
            records=seen.records,
            groups=seen.groups,
            classes=classes,
            fewest_rows=seen.fewest_rows,
            k_counts="people" if judged else "records",
            required=rules.k if rules else None,
            fewest_people=seen.fewest_people if judged else None,
            required_people=rules.k if rules and judged else None,
            smallest_class=smallest,
            max_delay=rules.max_delay if rules else None,
            loss=round(loss / counted, 6) if counted else None,
            losses=numbers.loss_per_attribute(),
            sizes=dict(sorted(seen.sizes.items())),
            people=dict(sorted(seen.people.items())) if judged else None,
            chance=self._judge.chances.all() if judged else None,
            sensitive=measures,
            linkage=self._links.all(),
            versions=dict(numbers.policies),
            repeated=self._repeated,
            open=self._open,
            undecided=0 if compared and compared.determined == seen.groups else seen.undecided,
            notes=self._notes(compared),
            raw=compared,
            checks=checks(rules, compared is not None, self._topic, findings),
            findings=tuple(findings),
        )

    def _compare(self) -> Compared | None:
        if self._original is None or self._rules is None:
            return None
        found = Compared(raw_rows=len(self._original))
        if self._all:
            rows, labels = np.concatenate(self._all), self._numbers.labels
            found = compare(rows, labels, self._original, self._rules, self._findings)
        found.unread = [{"line": bad.line, "code": bad.code} for bad in self._original.unread[:_TOLD]]
        return found

    def _notes(self, compared: Compared | None) -> tuple[str, ...]:
        """Return notes on what this audit could not judge."""
        rules = self._rules
        if not self._judge.seen.records:
            return ("there are no records: nothing was judged",)
        if rules is None:
            return ("without a policy only what the records say of themselves was judged",)
        found = [f"not judged: {what}" for what in rules.unjudged]
        if compared is None:
            unseen = dict.fromkeys((model.code, model.only_raw) for model in rules.models if model.only_raw)
            found += [f"not judged: {code}: {why}; pass --raw" for code, why in unseen]
        if compared is None and rules.subject:
            found.append("people were counted as declared; pass --raw to count them")
        for name, column in rules.sensitive.items():
            if alike := column.nearly_equal():
                differ = "value differs" if alike == 1 else "values differ"
                found.append(f"{name}: {alike:,} {differ} from another one only in punctuation or accents: each counts")
        if self._original is not None and (unread := self._original.unread):
            first = ", ".join(f"line {bad.line} ({bad.code})" for bad in unread[:_SHOWN])
            more = ", ..." if len(unread) > _SHOWN else ""
            found.append(f"raw: {len(unread):,} lines are no records: {first}{more}")
        if len(self._numbers.policies) > 1:
            found.append("records of several versions of the policy: judged by this one")
        return tuple(found)


def audit_file(
    path: Path, rules: Rules | None, original: Original | None = None, heard: Callable[[int], None] | None = None
) -> AuditResult:
    """Audit a published file and return the result; `heard` is told of the records of every part."""
    findings = Findings()
    return audit_chunks(read_chunks(path, rules, findings), Auditor(rules, findings, original), str(path), heard)


def audit_chunks(
    chunks: Iterable[Chunk], auditor: Auditor, source: str, heard: Callable[[int], None] | None = None
) -> AuditResult:
    """Audit a finite sequence of chunks and return the result."""
    for chunk in chunks:
        auditor.add(chunk)
        if heard is not None:
            heard(len(chunk))
    return auditor.result(source)
