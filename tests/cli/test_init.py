"""`init`: whatever the table, the policy it writes is valid, safe, and the same every time."""

from __future__ import annotations

import csv
import json
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_anon.cli import run_command as run
from stream_anon.cli.prepare import prepare
from stream_anon.demo import admissions
from stream_anon.policy.load import load

CELLS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["", "NA", "?", "true", "NO", "010", "1e3", "*", "(missing)", "rare", "2026-03-08", "${x}", "a;b", "é"]
    ),
    st.integers(-(10**17), 10**17).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)
NAMES = st.one_of(
    st.sampled_from(["age", "zip", "diagnosis", "patient_id", "a", "a.b", "sum", "no", "1x"]), st.text(max_size=8)
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("data.jsonl").write_bytes(b"".join(record + b"\n" for record in islice(admissions(3), 600)))
    return tmp_path


def test_the_hospital(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "data.jsonl"]) == 0
    told = capsys.readouterr().err
    assert "DECIDE" in told
    assert told.splitlines()[-1].endswith("stream-anon check policy.yaml --data data.jsonl")
    loaded, _ = prepare(place / "policy.yaml")
    roles = {name: attribute.role for name, attribute in loaded.policy.attributes.items()}
    assert loaded.policy.subject == "patient_id"
    assert roles == {
        "patient_id": "identifier", "name": "identifier", "birth_year": "quasi_identifier", "zip": "quasi_identifier",
        "gender": "quasi_identifier", "country": "quasi_identifier", "diagnosis": "sensitive",
        "ward": "quasi_identifier",
    }  # fmt: skip
    assert run(["check", "policy.yaml", "--data", "data.jsonl", "--strict"]) == 0
    assert run(["preview", "data.jsonl", "-p", "policy.yaml", "--rows", "0"]) == 0


def test_nothing_is_overwritten(place: Path) -> None:
    assert run(["init", "data.jsonl"]) == 0
    first = Path("policy.yaml").read_bytes()
    Path("policy.yaml").write_text("mine")
    assert run(["init", "data.jsonl"]) == 1
    assert Path("policy.yaml").read_text() == "mine"
    assert run(["init", "data.jsonl", "--force"]) == 0
    assert Path("policy.yaml").read_bytes() == first


def test_every_column_has_a_reason_and_none_is_insensitive(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "data.jsonl", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    text = Path("policy.yaml").read_text()
    for column in found["columns"]:
        assert column["role"] != "insensitive"
        assert f"  # {column['name']}: {column['reason']}\n" in text
        assert not column["decide"] or f"  # DECIDE: {column['decide']}\n" in text


def test_tables_beside_the_policy(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Path("t.csv").open("w") as file:
        file.write("city,age\n")
        file.writelines(f"{'Bigtown' if i % 3 else f'Village {i % 300}'},{20 + i % 50}\n" for i in range(600))
    assert run(["init", "t.csv", "--json"]) == 0
    [table] = json.loads(capsys.readouterr().out)["files"]
    assert Path(table).read_text().startswith("Bigtown;Bigtown;*\n")
    assert "Village 3;rare;*\n" in Path(table).read_text()
    Path("policy.yaml").unlink()
    assert run(["init", "t.csv"]) == 1  # the table is there and may have been edited
    assert not Path("policy.yaml").exists()


MISTAKES = [
    # remark, name, content, what the message names
    ("no rows", "t.csv", "a,b\n", "has no rows"),
    ("no records", "t.jsonl", '["a"]\n["b"]\n', "no line of it is a record: line 1 (not_object), line 2 (not_object)"),
    ("no names", "t.csv", "39,State-gov,77516\n50,Private,83311\n", "looks like a record"),
    ("nothing to generalize", "t.csv", "a\nsame\nsame\n", "no column can be generalized"),
    ("an unknown kind", "t.xlsx", "x", "unknown kind of file"),
    ("a name inside another", "t.csv", "a,age,a.b\n0,7,x\n1,8,y\n", 'inside "a"'),
]


@pytest.mark.parametrize(("name", "content", "word"), [c[1:] for c in MISTAKES], ids=[c[0] for c in MISTAKES])
def test_mistakes(place: Path, name: str, content: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(name).write_text(content)
    assert run(["init", name]) == 1
    assert word in capsys.readouterr().err
    assert not Path("policy.yaml").exists()


SPELLINGS = [
    # remark, column, values, whether they are told
    ("case and space do not count", "diagnosis", ["Flu", "FLU", " flu", "ulcer"], False),
    ("punctuation does", "diagnosis", ["type 2", "type-2", "ulcer"], True),
    ("a quasi-identifier is what is written", "city", ["zürich ", "Zurich", "ZURICH", "Bern"], True),
    ("different ones", "city", ["Zurich", "Bern", "Basel"], False),
]


@pytest.mark.parametrize(("name", "values", "told"), [c[1:] for c in SPELLINGS], ids=[c[0] for c in SPELLINGS])
def test_spellings(place: Path, name: str, values: list[str], told: bool, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{20 + i % 50},{values[i % len(values)]}\n" for i in range(200)]
    Path("t.csv").write_text(f"age,{name}\n" + "".join(lines), encoding="utf-8")
    assert run(["init", "t.csv"]) == 0
    assert ("only in spelling" in " ".join(capsys.readouterr().err.split())) is told
    assert run(["check", "policy.yaml", "--data", "t.csv", "--json"]) == 0
    talk = capsys.readouterr()
    assert ("values-nearly-equal" in [found["code"] for found in json.loads(talk.out)["diagnostics"]]) is told
    assert not any(value in talk.out + talk.err for value in values)


MARKERS = [
    # remark, column, values, what missing_values gets beside the words that every policy knows
    ("a word", "diagnosis", ["flu", "hiv", "Unknown", "ulcer"], {"unknown"}),
    ("a word that every policy knows", "diagnosis", ["flu", "hiv", "n/a", "ulcer"], set()),
    ("codes among words", "diagnosis", ["flu", "hiv", "-1", "999"], {"-1", "999"}),
    ("codes among numbers", "score", [*map(str, range(9)), "-1", "999"], {"-1", "999"}),
    ("codes as decimals", "score", ["1.0", "2.0", "3.0", "-9.0"], {"-9.0"}),
    ("a number like others", "score", ["-3", "-2", "-1", "0", "1"], set()),
    ("a word that may be a value", "diagnosis", ["flu", "none", "other"], set()),
    ("nothing else would be left", "diagnosis", ["flu", "unknown"], set()),
]


@pytest.mark.parametrize(("name", "values", "found"), [c[1:] for c in MARKERS], ids=[c[0] for c in MARKERS])
def test_markers_never_count(place: Path, name: str, values: list[str], found: set[str]) -> None:
    """A word or code for nothing in a sensitive column is no value, its records stay, and l can be reached."""
    lines = [f"p{i},{20 + i % 50},{values[i % len(values)]}\n" for i in range(220)]
    Path("t.csv").write_text(f"patient_id,age,{name}\n" + "".join(lines))
    assert run(["init", "t.csv"]) == 0
    text = Path("policy.yaml").read_text()
    assert "a value of its own" not in text
    assert "rejected for a word" not in text
    policy = load(Path("policy.yaml")).policy
    assert set(policy.missing_values) - {"n/a", "na", "nan", "null", "missing", "?"} == found
    assert run(["anonymize", "t.csv", "-p", "policy.yaml", "-o", "o.jsonl"]) == 0
    out = list(map(json.loads, Path("o.jsonl").read_text().splitlines()))
    assert len(out) == 220
    groups: dict[str, set[str]] = {}
    for record in out:
        groups.setdefault(record["_anon"]["group"], set()).add(str(record[name]).casefold())
    assert all(len(group - set(policy.missing_values)) >= 2 for group in groups.values())
    assert run(["audit", "o.jsonl", "-p", "policy.yaml"]) == 0


def test_no_name_becomes_a_marker(place: Path) -> None:
    """The subject's words are compared with the same list: person 999 is somebody."""
    lines = [f"{i},{20 + i % 50},{['flu', 'hiv', '999'][i % 3]}\n" for i in range(900, 1100)]
    Path("t.csv").write_text("patient_id,age,diagnosis\n" + "".join(lines))
    assert run(["init", "t.csv"]) == 0
    assert "999" not in load(Path("policy.yaml")).policy.missing_values


def test_another_encoding(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cities = ["Zürich", "Bern", "Basel"]
    lines = [f"{20 + i % 50},{cities[i % 3]}\n" for i in range(60)]
    Path("t.csv").write_text("age,city\n" + "".join(lines), encoding="latin-1")
    assert run(["init", "t.csv"]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "20 lines are no records" in told
    assert "that is a lot: if many lines are told, name the encoding: --encoding windows-1252" in told


def test_dates_with_slips(place: Path) -> None:
    days = [f"1980-03-{i % 28 + 1:02d}" if i % 30 else "8/3/1980" for i in range(200)]
    Path("t.csv").write_text("born,sex\n" + "".join(f"{day},{'fm'[i % 2]}\n" for i, day in enumerate(days)))
    assert run(["init", "t.csv"]) == 0
    assert "# DECIDE: not written as YYYY-MM-DD: 7;" in Path("policy.yaml").read_text()
    assert run(["anonymize", "t.csv", "-p", "policy.yaml", "-o", "o.csv", "--max-rejected", "0"]) == 0


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(NAMES, min_size=1, max_size=5, unique=True), data=st.data())
def test_any_table_gives_a_valid_policy(place: Path, names: list[str], data: st.DataObject) -> None:
    """Either a policy that `check` accepts as it is, twice the same, or a plain refusal; never a defect."""
    kinds = [data.draw(st.lists(CELLS, min_size=1, max_size=4)) for _ in names]
    rows = data.draw(st.integers(1, 40))
    with Path("any.csv").open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([[cells[(i * 7 + len(cells)) % len(cells)] for cells in kinds] for i in range(rows)])
    code = run(["init", "any.csv", "--force"])
    assert code in (0, 1)
    if code == 0:
        assert run(["check", "policy.yaml"]) == 0
        first = Path("policy.yaml").read_bytes()
        assert run(["init", "any.csv", "--force"]) == 0
        assert Path("policy.yaml").read_bytes() == first
        assert run(["check", "policy.yaml", "--data", "any.csv"]) == 0


def test_words_and_codes_among_numbers_go_all_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One percent of "unknown", and 999 for "refused": a range with a leaf of its own, in every command alike."""
    monkeypatch.chdir(tmp_path)
    ages = [{7: "unknown", 8: "999"}.get(i % 100, f"{18 + i * 7 % 70}.0") for i in range(600)]
    births = [f"{1930 + i % 70}-{i % 12 + 1:02d}-01" for i in range(600)]
    lines = [f"{age},{birth},{'fm'[i % 2]}" for i, (age, birth) in enumerate(zip(ages, births, strict=True))]
    Path("t.csv").write_text("\n".join(["age,birth,sex", *lines]) + "\n")
    assert run(["init", "t.csv"]) == 0
    text = Path("policy.yaml").read_text()
    assert "6 rows with a word and the code 999 in place of a number" in text
    assert "unknown: leaf" in text
    assert "year, decade]" in text
    assert run(["anonymize", "t.csv", "-p", "policy.yaml", "-o", "out.jsonl", "--algorithm", "mondrian"]) == 0
    assert len(Path("out.jsonl").read_text().splitlines()) == 600, "no row was rejected"
    known = [record["age"] for record in map(json.loads, Path("out.jsonl").read_text().splitlines()) if record["age"]]
    assert sum(age != [None, None] for age in known) > 500, "3.0 is a whole number, and has a place"
    assert run(["audit", "out.jsonl", "-p", "policy.yaml", "--raw", "t.csv"]) == 0
    assert run(["check", "policy.yaml", "--data", "t.csv"]) == 0
