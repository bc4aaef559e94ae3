"""Violations planted into clean outputs of the real anonymizers: each is caught, under the right name."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from publishing import MODELS, Published, Record, people, publish

from stream_anon.auditor.findings import meanings
from stream_anon.cli import run_command as run

Records = list[Record]
Plant = Callable[[Records], Records]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Published]:
    made: dict[tuple[str, str], Published] = {}

    def get(shape: str, model: str) -> Published:
        if (shape, model) not in made:
            folder = tmp_path_factory.mktemp("clean")
            made[shape, model] = publish(folder, shape, model, "mondrian", people(90, seed=5))
            assert made[shape, model].audit(raw=True).passed
        return made[shape, model]

    return get


def groups(records: Records) -> list[Records]:
    """The records of each group, those with the fewest first."""
    found: dict[str, Records] = {}
    for record in records:
        found.setdefault(record["_anon"]["group"], []).append(record)
    return sorted(found.values(), key=len)


def renumber(members: Records, subjects: int | None = None) -> None:
    """Make a group consistent again: whoever forges records forges the envelope too."""
    for row, record in enumerate(members):
        people = len(members) if subjects is None else subjects
        record["_anon"] |= {"row": row, "size": len(members), "subjects": people}


def without(records: Records, gone: Records) -> Records:
    return [record for record in records if not any(record is other for other in gone)]


def group_of_three(records: Records) -> Records:
    members = groups(records)[0]
    renumber(members[:3])
    return without(records, members[3:])


def row_moved(records: Records) -> Records:
    """With its envelope, but not its quasi-identifiers."""
    first, second = groups(records)[:2]
    first[0]["_anon"]["group"] = second[0]["_anon"]["group"]
    renumber(first[1:])
    renumber([*second, first[0]])
    return records


def row_moved_well(records: Records) -> Records:
    """Under the labels of a group like which nobody has its illness, so that only the raw table can tell."""
    found = groups(records)

    def meet(one: dict[str, Any], two: dict[str, Any]) -> bool:
        texts = [(one[name].rstrip("*"), two[name].rstrip("*")) for name in ("zip", "sex")]
        near = one["age"][0] <= two["age"][1] and two["age"][0] <= one["age"][1]
        return near and all(a.startswith(b) or b.startswith(a) for a, b in texts)

    first, other = next(
        (first, other)
        for first in found
        for other in found
        if not any(r["ill"] == first[0]["ill"] and meet(r, other[0]) for r in records)
    )
    moved = first[0]
    moved |= {name: other[0][name] for name in ("age", "zip", "sex")} | {"_anon": dict(other[0]["_anon"])}
    renumber(first[1:])
    renumber([*other, moved])
    return records


def row_doubled(records: Records) -> Records:
    return [*records, copy.deepcopy(records[0])]


def row_doubled_well(records: Records) -> Records:
    """As one more row of its group."""
    twin = copy.deepcopy(groups(records)[0][0])
    members = [*groups(records)[0], twin]
    renumber(members)
    return [*records, twin]


def row_lost(records: Records) -> Records:
    return records[1:]


def group_twice(records: Records) -> Records:
    """Once more under another id: every row in two groups."""
    again = copy.deepcopy(groups(records)[0])
    for record in again:
        record["_anon"]["group"] = "00000000deadbeef"
    return [*records, *again]


def one_value(records: Records) -> Records:
    for record in groups(records)[0]:
        record["ill"] = "flu"
    return records


def half_and_rest(records: Records) -> Records:
    """Three values, one of them far above any share."""
    members = groups(records)[-1]
    for record in members:
        record["ill"] = "cough"
    members[0]["ill"], members[1]["ill"] = "asthma", "gastritis"
    return records


def two_values(records: Records) -> Records:
    for i, record in enumerate(groups(records)[0]):
        record["ill"] = ("ulcer", "flu")[i % 2]
    return records


def exact_number(records: Records) -> Records:
    for record in groups(records)[0]:
        record["age"] = record["age"][0]
    return records


def exact_in_one_row(records: Records) -> Records:
    record = next(record for record in records if record["age"][0] < record["age"][1])
    record["age"] = [record["age"][0], record["age"][0]]
    return records


def set_all(name: str, value: Any) -> Plant:
    def plant(records: Records) -> Records:
        for record in groups(records)[0]:
            record[name] = value
        return records

    return plant


def set_one(name: str, value: Any) -> Plant:
    def plant(records: Records) -> Records:
        records[7][name] = value
        return records

    return plant


def envelope(**changes: Any) -> Plant:
    def plant(records: Records) -> Records:
        for record in groups(records)[0]:
            record["_anon"] |= changes
        return records

    return plant


def envelope_of_one(**changes: Any) -> Plant:
    def plant(records: Records) -> Records:
        records[3]["_anon"] |= changes
        return records

    return plant


def drop(name: str) -> Plant:
    def plant(records: Records) -> Records:
        del records[2][name]
        return records

    return plant


def invented(records: Records) -> Records:
    """A row with a ward that nobody was in."""
    records[0]["ward"] = "z"
    return records


def narrowed(records: Records) -> Records:
    """A whole group's label, so that its rows no longer lie inside."""
    for record in next(members for members in groups(records) if members[0]["sex"] != "*"):
        record["sex"] = "f" if record["sex"] == "m" else "m"
    return records


PLANTED: list[tuple[str, str, str, Plant, str, bool]] = [
    # remark, shape, model, what is done, code, with the raw table
    ("a group of k - 1", "plain", "k", group_of_three, "k_anonymity", False),
    ("fewer people than k declared", "plain", "k", envelope(subjects=3), "k_anonymity", False),
    ("a row moved", "plain", "k", row_moved, "two-generalizations", False),
    ("a row moved and relabelled", "plain", "k", row_moved_well, "not-in-raw", True),
    ("a doubled row", "plain", "k", row_doubled, "row-twice", False),
    ("a doubled row with a number of its own", "plain", "k", row_doubled_well, "more-than-raw", True),
    ("a group published twice", "plain", "k", group_twice, "more-than-raw", True),
    ("a row lost", "plain", "k", row_lost, "size", False),
    ("a size that lies", "plain", "k", envelope(size=99), "size", False),
    ("row numbers with a gap", "plain", "k", envelope_of_one(row=77), "rows", False),
    ("more people than rows", "plain", "k", envelope(subjects=99), "subjects", False),
    ("people that differ within a group", "plain", "k", envelope_of_one(subjects=2), "subjects", False),
    ("distinct l broken", "plain", "distinct", one_value, "l_diversity", False),
    ("entropy l broken", "plain", "entropy", half_and_rest, "l_diversity", False),
    ("recursive l broken", "plain", "recursive", half_and_rest, "l_diversity", False),
    ("a value above c", "plain", "lc", half_and_rest, "lc_anonymity", False),
    ("a value that asks for more values", "plain", "lc", two_values, "lc_anonymity", False),
    ("a value above its alpha", "plain", "alpha", two_values, "alpha_k", False),
    ("t broken", "plain", "t", one_value, "t_closeness", False),
    ("ordered t broken", "plain", "ordered t", set_all("ill", "colitis"), "t_closeness", False),
    ("an exact quasi-identifier", "plain", "k", exact_number, "exact-value", False),
    ("an exact quasi-identifier in one row", "plain", "k", exact_in_one_row, "two-generalizations", False),
    ("an exact instant", "times", "k", set_all("came", "2026-03-08T14:15:00"), "exact-value", False),
    ("an interval off its grid", "grids", "k", set_all("age", [19, 30]), "outside-hierarchy", False),
    ("an interval outside its range", "plain", "k", set_all("age", [10, 30]), "outside-hierarchy", False),
    ("a node nobody declared", "grids", "k", set_all("job", "garden"), "outside-hierarchy", False),
    ("a code of another length", "plain", "k", set_all("zip", "0123*"), "outside-hierarchy", False),
    ("a label that does not hold its rows", "plain", "k", narrowed, "not-in-raw", True),
    ("an undeclared field", "plain", "k", set_one("phone", "555-0101"), "undeclared-field", False),
    ("an offset in the envelope", "plain", "k", envelope_of_one(offset=17), "undeclared-field", False),
    ("an identifier", "plain", "k", set_one("who", "p7"), "identifier-published", False),
    ("what a person guards", "plain", "guards", set_one("guard", "lung"), "identifier-published", False),
    ("a field left out", "plain", "k", drop("zip"), "missing-field", False),
    ("no envelope", "plain", "k", drop("_anon"), "envelope", False),
    ("a group id that tells something", "plain", "k", envelope(group="ward-a-monday-01"), "envelope", False),
    ("a sensitive value nobody declared", "plain", "k", set_one("ill", "plague"), "unknown-value", False),
    ("a sensitive value left out", "gaps", "k", set_one("pay", None), "unknown-value", False),
    ("an end beyond all numbers", "plain", "k", set_all("age", [18, 10**400]), "outside-hierarchy", False),
    ("a loss that lies", "plain", "k", envelope(loss=0.9999), "loss", False),
    ("another policy", "plain", "k", envelope(policy="other@123456"), "policy", False),
    ("an invented row", "plain", "k", invented, "not-in-raw", True),
]  # fmt: skip


def planted(clean: Published, folder: Path, plant: Plant, suffix: str = ".jsonl") -> tuple[Published, Records]:
    records = plant(copy.deepcopy(clean.records()))
    out = folder / f"out{suffix}"
    out.write_text("".join(json.dumps(record) + "\n" for record in records))
    return replace(clean, out=out), records


@pytest.mark.parametrize(
    ("shape", "model", "plant", "code", "raw"), [case[1:] for case in PLANTED], ids=[case[0] for case in PLANTED]
)
def test_planted(
    tmp_path: Path,
    clean: Callable[[str, str], Published],
    shape: str,
    model: str,
    plant: Plant,
    code: str,
    raw: bool,
) -> None:
    forged, records = planted(clean(shape, model), tmp_path, plant)
    result = forged.audit(raw)
    found = {finding.code: finding for finding in result.findings}
    assert code in found, sorted(found)
    named = set(found[code].groups)
    assert named <= {record["_anon"]["group"] for record in records if "_anon" in record} or code == "envelope"


def test_only_the_raw_table_can_tell(tmp_path: Path, clean: Callable[[str, str], Published]) -> None:
    """What is well forged passes without the raw table: the reason why it is asked for."""
    for name, plant in (("twice", group_twice), ("invented", invented)):
        folder = tmp_path / name
        folder.mkdir()
        forged, _ = planted(clean("plain", "k"), folder, plant)
        assert forged.audit(raw=False).passed
        assert not forged.audit(raw=True).passed


def test_a_guard_breached(tmp_path: Path) -> None:
    """Groups made as if nobody had asked for protection, under a policy that says they had."""
    made = publish(tmp_path, "plain", "k", "mondrian", people(60, seed=3))
    policy = json.loads(made.policy.read_text())
    policy["privacy"].append({"model": "guarding_node", "attribute": "ill", "p": 0.4})
    made.policy.write_text(json.dumps(policy))
    assert any("guarding_node" in note for note in made.audit(raw=False).notes)
    result = made.audit(raw=True)
    assert [finding.code for finding in result.findings] == ["guarding_node"]
    assert result.raw is not None
    assert result.raw.largest_breach is not None
    assert result.raw.largest_breach > 0.4


def test_one_person_several_times(tmp_path: Path) -> None:
    """A group of k rows by fewer people that declares k of them: only the raw table can tell."""
    records = people(60, seed=3)
    made = publish(tmp_path, "plain", "k", "mondrian", records)
    raw = [json.loads(line) for line in made.raw.read_text().splitlines()]
    for record in raw:
        record["who"] = "everyone"
    made.raw.write_text("".join(json.dumps(record) + "\n" for record in raw))
    assert made.audit(raw=False).passed
    codes = {finding.code for finding in made.audit(raw=True).findings}
    assert {"people", "k_anonymity"} <= codes


def test_a_field_twice(tmp_path: Path, clean: Callable[[str, str], Published]) -> None:
    """Readers differ in which of the two they show."""
    made = clean("plain", "k")
    lines = made.out.read_text().splitlines(keepends=True)
    lines[4] = '{"zip":"0' + "12" + '",' + lines[4][1:]
    out = tmp_path / "out.jsonl"
    out.write_text("".join(lines))
    assert [finding.code for finding in replace(made, out=out).audit().findings] == ["duplicate-field"]


def test_what_is_no_record(tmp_path: Path, clean: Callable[[str, str], Published]) -> None:
    made = clean("plain", "k")
    out = tmp_path / "out.jsonl"
    out.write_text(made.out.read_text() + "[1, 2]\n{broken\n\n")
    [finding] = replace(made, out=out).audit().findings
    assert (finding.code, finding.count) == ("not-readable", 2)


def test_a_shuffled_file_is_the_same_file(tmp_path: Path, clean: Callable[[str, str], Published]) -> None:
    made = clean("plain", "distinct")
    out = tmp_path / "out.jsonl"
    out.write_text("".join(sorted(made.out.read_text().splitlines(keepends=True), key=hash)))
    ours, theirs = replace(made, out=out).audit().as_data(), made.audit().as_data()
    assert {**ours, "source": ""} == {**theirs, "source": ""}


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_an_undeclared_column_in_every_kind_of_file(tmp_path: Path, suffix: str) -> None:
    """The policy forgets a column that was published under another one."""
    made = publish(tmp_path, "plain", "k", "mondrian", people(60, seed=1), suffix)
    assert made.audit().passed
    policy = json.loads(made.policy.read_text())
    del policy["attributes"]["ward"]
    made.policy.write_text(json.dumps(policy))
    assert {finding.code for finding in made.audit().findings} == {"undeclared-field"}


def test_the_command(
    tmp_path: Path, clean: Callable[[str, str], Published], capsys: pytest.CaptureFixture[str]
) -> None:
    """4 with the groups named and no data value told; 0 for the clean file."""
    made = clean("plain", "k")
    assert run(["audit", str(made.out), "-p", str(made.policy), "--raw", str(made.raw)]) == 0
    assert "passed" in capsys.readouterr().err
    forged, records = planted(made, tmp_path, set_one("phone", "555-0101"))
    assert run(["audit", str(forged.out), "-p", str(made.policy)]) == 4
    told = capsys.readouterr().err
    assert records[7]["_anon"]["group"] in told
    assert "555-0101" not in told
    assert "phone" not in told, "the name of an undeclared field can be a value"
    assert run(["audit", str(forged.out), "-p", str(made.policy), "--json"]) == 4
    [finding] = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["code"], finding["count"]) == ("undeclared-field", 1)


def test_the_list_has_as_many_kinds_as_it_should() -> None:
    assert len(PLANTED) >= 20
    assert len({case[4] for case in PLANTED}) >= 18
    assert set(MODELS) - {"wishes"} == {case[2] for case in PLANTED}
    assert max(Counter(case[0] for case in PLANTED).values()) == 1


def test_the_documentation_explains_every_finding() -> None:
    text = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    assert [code for code in meanings() if f"`{code}`" not in text] == []


REFUSED = [
    # remark, arguments after the file, exit code, told
    ("raw records without a policy", ["--raw", "RAW"], 2, "raw records need a policy: pass -p"),
    ("following a file", ["--follow"], 2, "only a topic"),
    ("no such policy", ["-p", "NONE"], 3, "missing-file"),
    ("a policy nobody understands", ["-p", "RAW"], 3, "not-"),
    ("no such raw file", ["-p", "POLICY", "--raw", "NONE"], 1, "unknown kind of file"),
]


@pytest.mark.parametrize(("arguments", "code", "told"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_refused(
    clean: Callable[[str, str], Published],
    arguments: list[str],
    code: int,
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = clean("plain", "k")
    names = {"RAW": str(made.raw), "POLICY": str(made.policy), "NONE": str(made.raw.with_name("none"))}
    assert run(["audit", str(made.out), *(names.get(word, word) for word in arguments)]) == code
    talk = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert told in talk
    assert "p17" not in talk


def test_a_file_of_another_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("a.csv", "x,y\n1,2\n"), ("b.parquet", "nothing"), ("c.txt", "")):
        (tmp_path / name).write_text(text)
        assert run(["audit", str(tmp_path / name)]) == 1
        assert capsys.readouterr().err.startswith("error: ")
