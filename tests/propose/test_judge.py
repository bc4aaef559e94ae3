"""What is proposed for columns of all kinds."""

from __future__ import annotations

from typing import Any

import pytest

from stream_anon.insight.propose import columns_of, judge, policy_text, subject_of
from stream_anon.insight.propose.hints import words_of
from stream_anon.insight.propose.judge import MOST_QUASI, Proposal

ROWS = 200
TEXT, TYPED = True, False


def proposed(name: str, values: list[Any], text: bool = TEXT) -> Proposal:
    rows = [{name: value} if value is not None else {} for value in values]
    [column] = columns_of(rows, text)
    beside = columns_of([{"sex": "fm"[i % 2]} for i in range(ROWS)], TEXT)  # a policy needs a quasi-identifier
    return judge([column, *beside])[0]


def cycle(*values: Any) -> list[Any]:
    return [values[i % len(values)] for i in range(ROWS)]


def each(make: Any) -> list[Any]:
    return [make(i) for i in range(ROWS)]


UNKNOWN = each(lambda i: "unknown" if i % 100 == 7 else str(18 + i % 70))
REFUSED = each(lambda i: {3: "-1", 90: "999"}.get(i, str(18 + i % 70)))
BIRTHS = each(lambda i: f"{1930 + i % 80}-03-{i % 28 + 1:02d}")
SLIPS = each(lambda i: f"1980-03-{i % 28 + 1:02d}" if i % 30 else "8/3/1980")
MIXED = each(lambda i: f"19{30 + i % 70}-03-{i % 28 + 1:02d}" if i % 3 else f"{i % 28 + 1:02d}.03.19{30 + i % 70}")

CASES = [
    # remark, name, values, as text, role, a part of the hierarchy ("" for none), asks
    ("e-mail by name", "email", cycle("a", "b"), TEXT, "identifier", "", False),
    ("e-mail by look", "contact", each(lambda i: f"u{i % 9}@example.org"), TEXT, "identifier", "", False),
    ("phone by look", "reach", each(lambda i: f"555-010-{i % 99:04d}"), TEXT, "identifier", "", False),
    ("an id", "patient_id", each(lambda i: f"P{i % 150}"), TEXT, "identifier", "", False),
    ("an id of people who come often", "Patient ID", each(lambda i: f"P{i % 30:05d}"), TEXT, "identifier", "", False),
    ("a person", "customer", each(lambda i: f"c{i % 30}"), TEXT, "identifier", "", False),
    ("kinds of people", "customer", cycle("new", "old"), TEXT, "quasi_identifier", "flat", True),
    ("a running number", "index", each(str), TEXT, "identifier", "interval", True),
    ("a name of few things", "country_name", cycle("A", "B"), TEXT, "quasi_identifier", "flat", False),
    ("unique text", "remark", each(lambda i: f"x{i}-{i * i}"), TEXT, "identifier", "", True),
    ("age", "age", each(lambda i: str(18 + i % 70)), TEXT, "quasi_identifier", "snap: [5, 10]", False),
    ("age as a number", "age", each(lambda i: 18 + i % 70), TYPED, "quasi_identifier", "snap: [5, 10]", False),
    ("a number that came as text is text", "age", each(lambda i: str(i % 5)), TYPED, "quasi_identifier", "flat", False),
    ("decimals", "dose", each(lambda i: f"{i % 40 / 8:.3f}"), TEXT, "quasi_identifier", "step: 0.01", True),
    ("negative numbers", "shift", each(lambda i: str(i % 90 - 50)), TEXT, "quasi_identifier", "range: [-60, 49]", True),
    ("zip", "zip", each(lambda i: f"021{i % 40:02d}"), TEXT, "quasi_identifier", "prefix, length: 5", False),
    ("a code by its zeros", "site", each(lambda i: f"0{i % 40:03d}"), TEXT, "quasi_identifier", "length: 4", True),
    ("a code with letters", "ward", each(lambda i: f"B{i % 40:02d}"), TEXT, "quasi_identifier", "alphanumeric", True),
    ("dates", "admitted", each(lambda i: f"2026-03-{i % 28 + 1:02d}"), TEXT, "quasi_identifier", "day, week", True),
    ("dates in two forms", "geboren", MIXED, TEXT, "left out", "", True),
    ("known to others, in German", "Alter", each(lambda i: str(18 + i % 70)), TEXT, "quasi_identifier", "snap", False),
    ("sensitive, in French", "État_Santé", cycle("bon", "mauvais"), TEXT, "sensitive", "flat", True),
    ("dates, some slips", "birth", SLIPS, TEXT, "quasi_identifier", "[day, week", False),
    ("instants", "seen", each(lambda i: f"2026-03-08T{i % 24:02d}:00:00Z"), TEXT, "quasi_identifier", "[hour", True),
    ("Unix time", "created", each(lambda i: 1_700_000_000 + i), TYPED, "quasi_identifier", "epoch: seconds", True),
    ("dates nobody can read", "visit", each(lambda i: f"{i % 12 + 1}/03/2026"), TEXT, "left out", "", True),
    ("a boolean", "owner", cycle(True, False), TYPED, "quasi_identifier", 'values: ["false", "true"]', True),
    ("0 and 1", "owner", cycle("0", "1"), TEXT, "quasi_identifier", 'values: ["0", "1"]', True),
    ("few values", "gender", cycle("f", "m", "x"), TEXT, "quasi_identifier", "values: [f, m, x]", False),
    ("missing values", "gender", cycle("f", "m", None), TEXT, "quasi_identifier", "flat", False),
    ("many rare words", "city", ["A"] * 180 + list("bcdefghijklmnopqrstu"), TEXT, "quasi_identifier", "csv", False),
    ("sensitive", "diagnosis", cycle("flu", "ulcer"), TEXT, "sensitive", "flat", True),
    ("a scale", "religious", each(lambda i: str(i % 4 + 1)), TEXT, "sensitive", "range: [1, 4]}", True),
    ("exact numbers", "salary", each(lambda i: str(i % 90 * 111)), TEXT, "quasi_identifier", "interval", True),
    ("words among numbers", "age", UNKNOWN, TEXT, "quasi_identifier", "snap: [5, 10]", False),
    ("codes of exceptions", "age", REFUSED, TEXT, "quasi_identifier", "range: [5, 99], snap: [5, 10]", False),
    ("exceptions as numbers", "age", [int(v) for v in REFUSED], TYPED, "quasi_identifier", "range: [5, 99]", False),
    ("codes of kinds", "occupation", each(lambda i: str(i % 6 + 1)), TEXT, "quasi_identifier", "flat, values", True),
    ("a count is no kind", "children", each(lambda i: str(i % 6)), TEXT, "quasi_identifier", "interval", True),
    ("dates of birth", "birth", BIRTHS, TEXT, "quasi_identifier", "year, decade]", False),
    ("health, abbreviated", "hlthg", cycle("0", "1"), TEXT, "sensitive", "flat", True),
    ("politics", "vote", cycle("0", "1"), TEXT, "sensitive", "flat", True),
    ("sex life", "affairs", cycle("yes", "no"), TEXT, "sensitive", "flat", True),
    ("unions, in Spanish", "sindicato", cycle("si", "no"), TEXT, "sensitive", "flat", True),
    ("health, in German", "Krankheit", cycle("a", "b"), TEXT, "sensitive", "flat", True),
    ("crime", "prior_conviction", cycle("a", "b"), TEXT, "sensitive", "flat", True),
    ("free text", "notes", each(lambda i: f"{'came in with something ' * 2}{i % 150}"), TEXT, "left out", "", True),
    ("lists", "tags", cycle(["a"], ["b"]), TYPED, "left out", "", True),
    ("a name no policy can hold", 'a"b', cycle("a", "b"), TEXT, "left out", "", True),
    ("no name, as an index has it", "", each(str), TEXT, "left out", "", True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "values", "text", "role", "part", "asks"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_a_column(name: str, values: list[Any], text: bool, role: str, part: str, asks: bool) -> None:
    found = proposed(name, values, text)
    assert found.role == role
    assert part in (found.shape.hierarchy if found.shape else "")
    assert bool(found.shape) == bool(part)
    assert bool(found.decide) is asks
    assert found.reason


def test_a_constant_is_left_out_where_there_is_something_else() -> None:
    rows = [{"site": "A", "age": str(20 + i % 50), "empty": None} for i in range(ROWS)]
    roles = {p.column.name: p.role for p in judge(columns_of(rows, TEXT))}
    assert roles == {"site": "left out", "age": "quasi_identifier", "empty": "left out"}


def test_a_number_with_words_for_missing() -> None:
    found = proposed("age", cycle("31", "NA", "44", "52"))
    assert found.shape is not None
    assert found.shape.type == "integer"
    assert found.column.odd == ROWS // 4


def test_numbers_that_are_written_in_several_ways() -> None:
    found = proposed("cost", each(lambda i: f"{i * 7}.50" if i % 9 else f"{i * 7},50"))
    assert (found.role, found.shape) == ("identifier", None)
    assert found.decide.startswith("most are numbers")


def test_the_range_holds_the_sample_with_room() -> None:
    found = proposed("age", each(lambda i: str(17 + i % 74)))
    assert found.shape is not None
    assert found.shape.hierarchy == "{kind: interval, range: [5, 104], snap: [5, 10]}"


def test_what_says_the_same_twice_is_kept_once() -> None:
    rows = [{"school": f"s{i % 5}", "school_no": str(i % 5), "sex": "fm"[i % 2]} for i in range(ROWS)]
    roles = {p.column.name: p.role for p in judge(columns_of(rows, TEXT))}
    assert roles == {"school": "quasi_identifier", "school_no": "left out", "sex": "quasi_identifier"}


def test_too_many_are_cut_by_what_their_names_tell() -> None:
    rows = [{f"x{c}": str(i * i % (c + 5)) for c in range(12)} | {"sex": "fm"[i % 2]} for i in range(ROWS)]
    found = judge(columns_of(rows, TEXT))
    quasi = [p.column.name for p in found if p.role == "quasi_identifier"]
    assert len(quasi) == MOST_QUASI
    assert "sex" in quasi


SUBJECTS = [
    # remark, columns as name: different values, subject
    ("the person before the record", {"record_id": 200, "patient_id": 150}, "patient_id"),
    ("any id rather than none", {"id": 200, "gender": 2}, "id"),
    ("a name is no key", {"surname": 150, "gender": 2}, None),
    ("somebody who comes often", {"visit": 200, "patient": 30}, "patient"),
    ("nobody", {"gender": 2}, None),
]


@pytest.mark.parametrize(("columns", "subject"), [c[1:] for c in SUBJECTS], ids=[c[0] for c in SUBJECTS])
def test_subject(columns: dict[str, int], subject: str | None) -> None:
    rows = [{name: f"v{i % count}" for name, count in columns.items()} for i in range(ROWS)]
    found = subject_of(judge(columns_of(rows, TEXT)))
    assert (found.name if found else None) == subject


def test_words() -> None:
    assert words_of("PatientID") >= {"patient", "id"}
    assert words_of("native-country") >= {"native", "country"}
    assert words_of("Sepal.Length") >= {"sepal", "length"}


def test_the_name_of_a_source_stays_in_its_comment() -> None:
    text = policy_text([proposed("diagnosis", cycle("flu", "ulcer"))], "p", "a\nprivacy: [] #.csv", "1 row")
    assert text.startswith("# Proposed by stream-anon init from a·privacy: [] #.csv: 1 row.\n")
