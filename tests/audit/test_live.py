"""Groups judged while records still come: completeness, repeats of an uncommitted reader, spilling to disk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from publishing import Published, people, publish

from stream_anon.auditor.auditor import Auditor
from stream_anon.auditor.findings import Findings
from stream_anon.auditor.pool import Closed
from stream_anon.auditor.reading.lines import LineReader
from stream_anon.auditor.reading.topics import TopicReader
from stream_anon.auditor.result import AuditResult

NOW = 1_790_000_000_000


@pytest.fixture
def made(tmp_path: Path) -> Published:
    return publish(tmp_path, "plain", "distinct", {"name": "cail"}, people(90, seed=4))


def messages(made: Published, **changes: Any) -> list[Any]:
    """The records as a worker sends them."""
    found = []
    for line in made.out.read_bytes().splitlines():
        key = json.loads(line)["_anon"]["group"].encode()
        found.append(SimpleNamespace(value=line, key=key, headers=[], timestamp=NOW, **changes))
    return found


def audited(made: Published, parts: Sequence[Sequence[Any]], **how: Any) -> AuditResult:
    findings = Findings()
    reader, auditor = TopicReader(made.rules, findings), Auditor(made.rules, findings, **how)
    for part in parts:
        auditor.add(reader.chunk(part))
    return auditor.result("topic")


def codes(result: AuditResult) -> list[str]:
    return [finding.code for finding in result.findings]


def test_a_live_topic(made: Published) -> None:
    """Any division into polls gives the same verdict as the file."""
    sent = messages(made)
    for step in (1, 7, 1000):
        result = audited(made, [sent[i : i + step] for i in range(0, len(sent), step)], live=True)
        assert (result.passed, result.open) == (True, 0)
        assert (result.records, result.groups, result.sizes) == (90, made.audit().groups, made.audit().sizes)


def test_the_end_of_a_live_topic_is_open(made: Published) -> None:
    sent = messages(made)
    first = json.loads(sent[0].value)["_anon"]
    rest = [m for m in sent if m.key.decode() != first["group"]]
    result = audited(made, [rest, sent[:1]], live=True)
    assert (result.passed, result.open) == (True, 1)
    assert codes(audited(made, [rest, sent[:1]])) != []


def test_a_group_that_comes_again(made: Published) -> None:
    sent = messages(made)
    again = [message for message in sent if message.key == sent[0].key]
    assert codes(audited(made, [sent, again], live=True)) == ["row-twice"]
    assert "row-twice" in codes(audited(made, [sent, again]))


def test_an_uncommitted_reader_may_see_records_again(made: Published) -> None:
    """A part of a group, aborted, and then the whole group: the same records, and no finding."""
    sent = messages(made)
    aborted = [SimpleNamespace(**vars(message)) for message in sent if message.key == sent[0].key][:2]
    for message in aborted:
        message.timestamp -= 600_000  # a worker died, and its successor came late
    for live in (False, True):
        result = audited(made, [aborted, aborted, sent], live=live, repeats=True)
        assert (codes(result), result.repeated, result.records) == ([], 4, 90)
    assert "row-twice" in codes(audited(made, [aborted, sent]))


def test_an_uncommitted_reader_never_sees_two_versions(made: Published) -> None:
    sent = messages(made)
    record = json.loads(sent[0].value)
    record["ill"] = "flu" if record["ill"] != "flu" else "cough"
    other = SimpleNamespace(value=json.dumps(record).encode(), key=sent[0].key, headers=[], timestamp=NOW)
    assert "row-twice" in codes(audited(made, [[other], sent], repeats=True))


SIDE_CHANNELS = [
    # remark, what a message is given, code
    ("an offset in a header", {"headers": [("offset", b"17")]}, "header"),
    ("the key of the input", {"key": b"patient-7"}, "key"),
    ("no key", {"key": None}, "key"),
    ("the time of the input", {"timestamp": NOW - 3_600_000}, "timestamp"),
    ("a tombstone", {"value": None}, "not-readable"),
]


@pytest.mark.parametrize(("changes", "code"), [c[1:] for c in SIDE_CHANNELS], ids=[c[0] for c in SIDE_CHANNELS])
def test_side_channels(made: Published, changes: dict[str, Any], code: str) -> None:
    sent = messages(made)
    vars(sent[5]).update(changes)
    result = audited(made, [sent])
    assert code in codes(result)
    named = {finding.code: finding.groups for finding in result.findings}[code]
    assert code == "not-readable" or named == (json.loads(sent[5].value)["_anon"]["group"],)


def test_rows_wait_on_disk(made: Published) -> None:
    """With room for hardly any row in memory the verdict and every measure stay the same."""
    lines = sorted(made.out.read_bytes().splitlines(), key=hash)
    results = []
    for room in (10, 1_000_000):
        findings = Findings()
        reader, auditor = LineReader(made.rules, findings), Auditor(made.rules, findings, in_memory=room)
        for start in range(0, len(lines), 11):
            auditor.add(reader.read(lines[start : start + 11]))
        results.append(auditor.result("file").as_data())
    assert results[0] == results[1]
    assert results[0]["passed"]


def test_closed_groups_are_remembered() -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2**63, 5000, dtype=np.uint64)
    closed = Closed()
    for part in np.array_split(groups, 100):
        assert not closed.contains(part).any()
        closed.add(part)
    assert closed.contains(groups).all()
    assert not closed.contains(groups + np.uint64(2**63)).any()
