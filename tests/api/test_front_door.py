"""What `import stream_anon` offers: every name works, and nothing is loaded before it is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pytest

import stream_anon
from stream_anon.demo import admissions, policy_text

POLICY: dict[str, Any] = {
    "version": 1,
    "name": "visits",
    "subject": "who",
    "secret": "a-secret-that-only-serves-these-tests",
    "attributes": {
        "who": {"role": "identifier"},
        "age": {
            "role": "quasi_identifier",
            "type": "integer",
            "hierarchy": {"kind": "interval", "range": [0, 120], "snap": [10]},
        },
        "illness": {"role": "sensitive"},
    },
    "privacy": [{"model": "k_anonymity", "k": 3}, {"model": "l_diversity", "attribute": "illness", "l": 2}],
    "stream": {"max_delay": {"time": 5.0, "records": 50}},
}


def policy(**changes: Any) -> stream_anon.Policy:
    return stream_anon.Policy.model_validate(POLICY | changes)


def records(count: int = 200) -> list[dict[str, Any]]:
    ills = ["flu", "ulcer", "asthma"]
    return [{"who": f"p{i % 150}", "age": i * 37 % 90, "illness": ills[i % 3], "phone": "555"} for i in range(count)]


def test_every_public_name_is_there() -> None:
    for name in stream_anon.__all__:
        assert getattr(stream_anon, name) is not None
    assert set(stream_anon.__all__) <= set(dir(stream_anon))
    with pytest.raises(AttributeError):
        stream_anon.nothing  # noqa: B018


def test_importing_loads_next_to_nothing() -> None:
    program = (
        "import sys, stream_anon; heavy = ('numpy', 'numba', 'rich', 'typer', 'kafka', 'pydantic');"
        "print([m for m in heavy if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"[]\n"
    program = "import sys; sys.argv = ['stream-anon', '--version']; import stream_anon.__main__ as m; m.main()"
    program += "; print([m for m in ('numpy', 'typer') if m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout.split(b"\n")
    assert told[0].startswith(b"stream-anon ")
    assert told[1] == b"[]"


def all_groups(anonymizer: stream_anon.Anonymizer, rows: list[Any]) -> Iterator[stream_anon.Group]:
    for i in range(0, len(rows), 7):
        yield from anonymizer.feed(rows[i : i + 7], now=i / 20)
    yield from anonymizer.finish(now=len(rows) / 20)


def test_a_stream_of_records_leaves_in_groups() -> None:
    rejected: list[stream_anon.Rejection] = []
    anonymizer = stream_anon.Anonymizer(policy(), on_reject=rejected.append)
    rows: list[Any] = [*records(), {"who": "x"}, b"not json", json.dumps(records(1)[0]), {"who": object()}]
    groups = list(all_groups(anonymizer, rows))
    published = [record for group in groups for record in group]
    counts = anonymizer.counts
    assert counts["consumed"] == len(rows) == len(published) + counts["suppressed"] + len(rejected)
    assert [(r.index, str(r.code)) for r in rejected] == [(201, "missing"), (202, "not_json"), (204, "wrong_type")]
    assert all(set(record) == {"age", "illness", "_anon"} for record in published)
    assert all(group.people >= 3 for group in groups)
    assert all(json.loads(line)["_anon"]["group"] == group.id for group in groups for line in group.encoded())


def test_deadlines_fire_without_arrivals() -> None:
    anonymizer = stream_anon.Anonymizer(policy())
    assert anonymizer.next_deadline is None
    assert anonymizer.feed(records(6), now=100.0) == []
    deadline = anonymizer.next_deadline
    assert deadline is not None
    assert 100.0 < deadline <= 105.0
    assert anonymizer.tick(now=deadline - 0.01) == []
    groups = anonymizer.tick(now=deadline)
    assert sum(map(len, groups)) == 6


@pytest.mark.parametrize("cut", [1, 60, 133])
def test_what_waits_can_be_taken_up_elsewhere(cut: int) -> None:
    """With a checkpoint in the middle every record leaves once, as without one; no group id comes twice."""
    rows = records()
    whole = stream_anon.Anonymizer(policy())
    expected = [group.encoded() for row in rows for group in whole.feed([row], now=0.0)]
    expected += [group.encoded() for group in whole.finish(now=0.0)]
    first = stream_anon.Anonymizer(policy())
    found = [group.encoded() for row in rows[:cut] for group in first.feed([row], now=0.0)]
    state = first.waiting()
    assert b"p1" not in state, "no identifier is in it"
    second = stream_anon.Anonymizer.restore(policy(), state)
    assert len(second) == len(first)
    found += [group.encoded() for row in rows[cut:] for group in second.feed([row], now=0.0)]
    found += [group.encoded() for group in second.finish(now=0.0)]
    members = [json.loads(line)["illness"] for group in found for line in group]
    assert sorted(members) == sorted(json.loads(line)["illness"] for group in expected for line in group)
    ids = [json.loads(group[0])["_anon"]["group"] for group in found]
    assert len(set(ids)) == len(ids)


def test_people_are_the_same_after_a_restart(tmp_path: Path) -> None:
    """One person's records before and after a checkpoint, in two processes, are one person's."""
    program = f"""
import sys, json, stream_anon
policy = stream_anon.Policy.model_validate({json.dumps(POLICY)!r} and json.loads({json.dumps(json.dumps(POLICY))}))
row = {{"who": "Ann", "age": 30, "illness": "flu"}}
path = {str(tmp_path / "state")!r}
if sys.argv[1] == "save":
    a = stream_anon.Anonymizer(policy)
    a.feed([row], now=0.0)
    open(path, "wb").write(a.waiting())
else:
    a = stream_anon.Anonymizer.restore(policy, open(path, "rb").read())
    a.feed([row | {{"who": "ann ", "illness": "ulcer"}}, row | {{"who": "Bo"}}], now=1.0)
    print(len(a.finish(now=2.0)), a.counts["suppressed"])
"""
    subprocess.run([sys.executable, "-c", program, "save"], check=True)
    told = subprocess.run([sys.executable, "-c", program, "load"], capture_output=True, check=True).stdout
    assert told == b"0 3\n", "two people are not three"


def test_a_state_of_another_policy_is_refused() -> None:
    anonymizer = stream_anon.Anonymizer(policy())
    anonymizer.feed(records(2), now=0.0)
    state = anonymizer.waiting()
    with pytest.raises(stream_anon.StateError, match="another policy"):
        stream_anon.Anonymizer.restore(policy(name="other"), state)
    with pytest.raises(stream_anon.StateError, match="damaged"):
        stream_anon.Anonymizer.restore(policy(), b"\x00nonsense")
    with pytest.raises(stream_anon.StateError, match="secret"):
        stream_anon.Anonymizer(policy(secret=None)).waiting()


FRAMES = {"records": list, "pandas": pandas.DataFrame, "polars": polars.DataFrame, "arrow": pyarrow.Table.from_pylist}


@pytest.mark.parametrize("kind", FRAMES)
def test_tables_come_back_as_they_came(kind: str, tmp_path: Path) -> None:
    table = FRAMES[kind](records())
    result = stream_anon.anonymize(table, policy(), algorithm="mondrian")
    assert type(result.table) is type(table)
    assert len(result.table) == result.published == result.rows - result.suppressed
    assert 0 < result.loss < 1
    assert stream_anon.audit(result.table, policy(), raw=table).passed
    result.write(tmp_path / "out.csv")
    assert stream_anon.audit(tmp_path / "out.csv", policy(), raw=table).passed
    result.write(tmp_path / "out.jsonl")
    forged = (tmp_path / "out.jsonl").read_text().replace("flu", "ulcer").replace("asthma", "ulcer")
    (tmp_path / "forged.jsonl").write_text(forged)
    found = stream_anon.audit(tmp_path / "forged.jsonl", policy())
    assert not found.passed
    assert "l_diversity" in {finding.code for finding in found.findings}


def test_parts_of_a_larger_table_have_groups_of_their_own() -> None:
    once, again, other = (stream_anon.anonymize(records(), policy(), part=part) for part in (3, 3, 4))
    ids = [{group.id for group in result.groups} for result in (once, again, other)]
    assert ids[0] == ids[1]
    assert not ids[0] & ids[2]
    assert once.table == again.table


def test_files_and_policies_from_files(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(policy_text(), encoding="utf-8")
    (tmp_path / "t.jsonl").write_bytes(b"\n".join(islice(admissions(1), 300)) + b"\nbroken\n")
    loaded = stream_anon.load_policy(tmp_path / "policy.yaml")
    result = stream_anon.anonymize(tmp_path / "t.jsonl", loaded)
    assert dict(result.rejected) == {"not_json": 1}
    assert [r.index for r in result.rejections] == [301]
    assert stream_anon.audit(result.table, loaded, raw=tmp_path / "t.jsonl").passed
    with pytest.raises(stream_anon.TooMuchLost):
        stream_anon.anonymize(tmp_path / "t.jsonl", loaded, max_rejected=0.0)


MISTAKES = [
    # remark, what is tried, what the error says
    ("a path for a policy", lambda: stream_anon.anonymize(records(), "policy.yaml"), "load_policy"),
    ("a mapping for a policy", lambda: stream_anon.Anonymizer(POLICY), "model_validate"),
    ("one record for many", lambda: stream_anon.Anonymizer(policy()).feed({"who": "p1"}), "into a list"),
    ("one line for many", lambda: stream_anon.Anonymizer(policy()).feed(b'{"who": "p1"}'), "into a list"),
    ("a path for records", lambda: stream_anon.Anonymizer(policy()).feed(Path("t.csv")), "into a list"),
    ("one record for a table", lambda: stream_anon.anonymize({"who": "p1"}, policy()), "into a list"),
]


@pytest.mark.parametrize(("tried", "says"), [case[1:] for case in MISTAKES], ids=[case[0] for case in MISTAKES])
def test_what_was_meant_otherwise_is_told(tried: Callable[[], object], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        tried()


def test_a_file_is_not_overwritten(tmp_path: Path) -> None:
    result = stream_anon.anonymize(records(), policy())
    result.write(tmp_path / "out.csv")
    with pytest.raises(stream_anon.StreamAnonError, match="overwrite=True"):
        result.write(tmp_path / "out.csv")
    result.write(tmp_path / "out.csv", overwrite=True)


def test_a_policy_that_cannot_be_used_says_where() -> None:
    broken = policy(privacy=[{"model": "l_diversity", "attribute": "illness", "l": 2}])
    with pytest.raises(stream_anon.PolicyError) as caught:
        stream_anon.Anonymizer(broken)
    assert "policy" in str(caught.value)


def test_a_proposal_can_be_used_at_once(tmp_path: Path) -> None:
    table = pandas.DataFrame([record | {"patient_id": f"P{i % 150}"} for i, record in enumerate(records())])
    proposed = stream_anon.propose(table.drop(columns=["who"]))
    assert proposed.subject == "patient_id"
    proposed.write(tmp_path / "policy.yaml")
    result = stream_anon.anonymize(table, stream_anon.load_policy(tmp_path / "policy.yaml"))
    assert result.published
