"""Audit what was published, and propose a policy for a table, from Python."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from stream_anon.auditor.auditor import audit_file
from stream_anon.auditor.policy import Rules, read_rules, rules_of
from stream_anon.auditor.raw.original import read_original
from stream_anon.auditor.result import AuditResult
from stream_anon.formats.frames import payload_of, records_of
from stream_anon.formats.packing import bare
from stream_anon.formats.tables import flat, format_of
from stream_anon.insight.propose import Proposal, columns_of, judge, policy_name, policy_text, subject_of
from stream_anon.insight.sample import Row, read_sample
from stream_anon.policy import Policy


def audit(
    published: Any, policy: Policy | str | os.PathLike[str], *, raw: Any = None, encoding: str | None = None
) -> AuditResult:
    """Judge published records by their policy; with the raw table, also count people and match rows.

    `published` and `raw` are paths, frames or iterables of records. The auditor shares no code with what made the
    records: it reads the policy by itself, from the file if a path is given. `result.passed` tells whether nothing was
    found, `result.findings` what was. `encoding` is that of a raw file that is not UTF-8 and has no byte order mark.
    """
    rules = _rules(policy)
    with _file(published) as out, _file(raw) as original:
        assert out is not None  # noqa: S101 - something was published
        named = encoding if isinstance(raw, str | os.PathLike) else None
        return audit_file(out, rules, None if original is None else read_original(original, rules, named))


def _rules(policy: Policy | str | os.PathLike[str]) -> Rules:
    if isinstance(policy, Policy):
        return rules_of(policy.model_dump(mode="json", exclude={"secret"}, exclude_none=True), policy.folder)
    return read_rules(Path(policy))


@contextmanager
def _file(table: Any) -> Iterator[Path | None]:
    """Give the auditor a file to read: the one that was named, or JSON lines of what is in memory."""
    if table is None or isinstance(table, str | os.PathLike):
        yield None if table is None else Path(table)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.jsonl"
        with path.open("wb") as file:
            for record in records_of(table):
                payload = payload_of(record)
                file.write(payload if isinstance(payload, bytes) else b"null")
                file.write(b"\n")
        yield path


@dataclass(frozen=True)
class ProposedPolicy:
    """A first policy for a table: its text, the reason for each column, and the tables its hierarchies need.

    `columns` marks with `decide` what only a person who knows the data can decide.
    """

    text: str
    subject: str | None
    columns: list[Proposal] = field(repr=False)
    tables: dict[str, str] = field(repr=False)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the policy, and its hierarchies into a folder beside it."""
        target = Path(path)
        for name, content in self.tables.items():
            file = target.parent / "hierarchies" / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(content, encoding="utf-8")
        target.write_text(self.text, encoding="utf-8")


def propose(table: Any, *, name: str = "table", limit: int = 10_000, encoding: str | None = None) -> ProposedPolicy:
    """Propose a policy for a table in memory or a file: what `stream-anon init` writes.

    `encoding` is that of a file of text that is not UTF-8 and has no byte order mark.

    >>> rows = [{"age": 20 + i % 50, "zip": f"021{i % 40:02}", "diagnosis": "abc"[i % 3]} for i in range(200)]
    >>> [(p.column.name, p.role) for p in propose(rows).columns]
    [('age', 'quasi_identifier'), ('zip', 'quasi_identifier'), ('diagnosis', 'sensitive')]
    """
    text, rows = False, list[Row]()
    if isinstance(table, str | os.PathLike):
        path = Path(table)
        text, name = format_of(path, otherwise=".jsonl").text, bare(path).stem
        rows = read_sample(path, limit, encoding).rows
    else:
        rows = [_flat(record) for record, _ in zip(records_of(table), range(limit), strict=False)]
    proposals = judge(columns_of(rows, text))
    subject = subject_of(proposals)
    return ProposedPolicy(
        text=policy_text(proposals, policy_name(name), name, f"{len(rows):,} rows"),
        subject=None if subject is None else subject.name,
        columns=list(proposals),
        tables={
            p.shape.file: "".join(";".join(line) + "\n" for line in p.shape.table)
            for p in proposals
            if p.shape is not None and p.shape.table and p.role == "quasi_identifier"
        },
    )


def _flat(record: Any) -> dict[str, Any]:
    payload = payload_of(record)
    found = msgspec.json.decode(payload) if isinstance(payload, bytes) else {}
    return {name: value for name, value in flat(found).items() if value != ""} if isinstance(found, dict) else {}
