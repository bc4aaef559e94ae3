"""Records become columns, or a code and the name of a column; never is a value repeated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from building import compile_policy, patients

from stream_anon.core.batch import NO_GUARD
from stream_anon.core.decode import Payload, Reject, Rejection
from stream_anon.core.encode import Encoded, Encoder
from stream_anon.core.hierarchy import Tree
from stream_anon.core.schema import Schema

MARK = "Xq7zWv"  # stands in every value that must not be repeated
GOOD = {"patient": 1, "age": 39, "home": {"zip": "02139", "ward": "B"}, "illness": "flu", "guard": "lung", "wish": 1}


def refs(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.stack([np.full(n, 2), 100 + np.arange(n)], axis=1), np.arange(n, dtype=np.float64)


def encode(schema: Schema, *payloads: Payload) -> Encoded:
    return Encoder(schema).encode(payloads, *refs(len(payloads)))


def changed(**fields: Any) -> bytes:
    """The good record with some fields changed; `...` removes one."""
    row = GOOD | fields
    return json.dumps({name: value for name, value in row.items() if value is not ...}).encode()


ODD: list[tuple[str, Payload, Reject, str]] = [
    # remark, payload, code, column
    ("a tombstone", None, Reject.TOMBSTONE, ""),
    ("refused before it was read", Reject.TOO_LARGE, Reject.TOO_LARGE, ""),
    ("nothing", b"", Reject.NOT_JSON, ""),
    ("blanks", b" \n", Reject.NOT_JSON, ""),
    ("not JSON", MARK.encode(), Reject.NOT_JSON, ""),
    ("cut off", changed()[:-3], Reject.NOT_JSON, ""),
    ("two records", changed() + changed(), Reject.NOT_JSON, ""),
    ("a byte order mark", b"\xef\xbb\xbf" + changed(), Reject.NOT_JSON, ""),
    ("UTF-16", changed().decode().encode("utf-16"), Reject.NOT_JSON, ""),
    ("bytes that are no text", changed().replace(b"flu", b"\xff\xfe"), Reject.NOT_JSON, ""),
    ("half a surrogate pair", changed().replace(b"flu", b"\\ud800 " + MARK.encode()), Reject.NOT_JSON, ""),
    ("not a number", changed().replace(b"39", b"NaN"), Reject.NOT_JSON, ""),
    ("deeper than any stack", b'{"home": ' + b'{"x":' * 50_000 + b"1" + b"}" * 50_000 + b"}", Reject.NOT_JSON, ""),
    (
        "a deep list that is published",
        changed(home={"zip": "02139"})[:-1] + b', "home": ' + b"[" * 50_000,
        Reject.WRONG_TYPE,
        "home",
    ),
    ("null", b"null", Reject.NOT_OBJECT, ""),
    ("a list", b"[1, 2]", Reject.NOT_OBJECT, ""),
    ("text", json.dumps(MARK).encode(), Reject.NOT_OBJECT, ""),
    ("text for a number", changed(age=MARK), Reject.WRONG_TYPE, "age"),
    ("a number in quotes", changed(age="39"), Reject.WRONG_TYPE, "age"),
    ("a fraction for an integer", changed(age=39.5), Reject.WRONG_TYPE, "age"),
    ("a truth for an integer", changed(age=True), Reject.WRONG_TYPE, "age"),
    ("a number without end", changed().replace(b"39", b"1e999"), Reject.WRONG_TYPE, "age"),
    ("a list for a category", changed(illness=[MARK]), Reject.WRONG_TYPE, "illness"),
    (
        "an object for an insensitive field",
        changed(home={"zip": "02139", "ward": {"ssn": MARK}}),
        Reject.WRONG_TYPE,
        "home.ward",
    ),
    ("a list for an insensitive field", changed(home={"zip": "02139", "ward": [MARK]}), Reject.WRONG_TYPE, "home.ward"),
    (
        "lists as deep as a decoder reads",
        changed().replace(b'"ward": "B"', b'"ward": ' + b"[" * 900 + b"]" * 900),
        Reject.WRONG_TYPE,
        "home.ward",
    ),
    (
        "lists deeper than a decoder reads",
        changed().replace(b'"ward": "B"', b'"ward": ' + b"[" * 9000 + b"]" * 9000),
        Reject.NOT_JSON,
        "",
    ),
    ("framing of a schema registry", b"\x00\x00\x00\x00\x07" + changed(), Reject.REGISTRY_FRAMING, ""),
    ("no framing where it is needed", Reject.NOT_FRAMED, Reject.NOT_FRAMED, ""),
    ("a schema that the registry does not have", Reject.UNKNOWN_SCHEMA, Reject.UNKNOWN_SCHEMA, ""),
    ("a schema that cannot be used", Reject.UNUSABLE_SCHEMA, Reject.UNUSABLE_SCHEMA, ""),
    ("bytes that are not of their schema", Reject.NOT_BY_SCHEMA, Reject.NOT_BY_SCHEMA, ""),
    ("a line of a table with a cell too many", Reject.CELL_COUNT, Reject.CELL_COUNT, ""),
    ("a line of a table with an open quote", Reject.NOT_CSV, Reject.NOT_CSV, ""),
    ("a line of a table that is not UTF-8", Reject.NOT_UTF8, Reject.NOT_UTF8, ""),
    ("a number where fields should be", changed(home=5), Reject.WRONG_TYPE, "home"),
    ("a list inside", changed(home={"zip": [MARK]}), Reject.WRONG_TYPE, "home.zip"),
    ("five thousand digits", changed().replace(b"39", b"9" * 5_000), Reject.WRONG_TYPE, "age"),
    ("four hundred digits", changed().replace(b"39", b"9" * 400), Reject.UNKNOWN, "age"),
    ("more than 64 bits", changed(age=2**63), Reject.UNKNOWN, "age"),
    ("beyond the range", changed(age=121), Reject.UNKNOWN, "age"),
    ("a field is missing", changed(age=...), Reject.MISSING, "age"),
    ("a field is null", changed(age=None), Reject.MISSING, "age"),
    ("the parent is missing", changed(home=...), Reject.MISSING, "home.zip"),
    ("the parent is null", changed(home=None), Reject.MISSING, "home.zip"),
    ("an empty record", b"{}", Reject.MISSING, "age"),
    ("no code of the hierarchy", changed(home={"zip": MARK}), Reject.UNKNOWN, "home.zip"),
    ("no value of the tree", changed(illness=MARK), Reject.UNKNOWN, "illness"),
    ("a large number as a category", changed(illness=10**4000), Reject.UNKNOWN, "illness"),
    ("a missing sensitive value", changed(illness=None), Reject.MISSING, "illness"),
    ("nobody", changed(patient=None), Reject.MISSING, "patient"),
    ("a guard that is no node", changed(guard=MARK), Reject.BAD_GUARD, "guard"),
    ("a guard beside its value", changed(guard="stomach"), Reject.BAD_GUARD, "guard"),
    ("a guard of another type", changed(guard=7), Reject.WRONG_TYPE, "guard"),
    ("a wish too many", changed(wish=2), Reject.BAD_PSF, "wish"),
    ("a wish as text", changed(wish=MARK), Reject.WRONG_TYPE, "wish"),
]


@pytest.mark.parametrize(("payload", "code", "column"), [c[1:] for c in ODD], ids=[c[0] for c in ODD])
def test_odd_records(tmp_path: Path, payload: Payload, code: Reject, column: str) -> None:
    result = encode(patients(tmp_path), changed(), payload, changed())
    assert [(r.index, r.code, r.column) for r in result.rejections] == [(1, code, column)]
    assert result.batch.ref[:, 1].tolist() == [100, 102], "its neighbours are kept"
    assert result.batch.arrived.tolist() == [0.0, 2.0]
    said = repr(result) + str(result) + repr(result.rejections) + repr(result.batch)
    assert MARK not in said
    assert "39" not in said


def test_all_odd_records_at_once(tmp_path: Path) -> None:
    payloads = [payload for _, payload, _, _ in ODD]
    result = encode(patients(tmp_path), *payloads)
    assert [(r.index, r.code, r.column) for r in result.rejections] == [
        (i, code, column) for i, (_, _, code, column) in enumerate(ODD)
    ]
    assert len(result.batch) == 0


def test_every_code_is_in_the_table() -> None:
    assert {code for _, _, code, _ in ODD} == set(Reject) - {Reject.UNPLACEABLE}


UNPLACEABLE = [
    # remark, model
    ("a value the reference does not know", "{model: t_closeness, attribute: illness, t: 0.5, reference: {ulcer: 1}}"),
    ("more values than there are", "{model: lc_anonymity, attribute: illness, l: 2, c: 0.9, values: {flu: {l: 9}}}"),
]


@pytest.mark.parametrize("model", [c[1] for c in UNPLACEABLE], ids=[c[0] for c in UNPLACEABLE])
def test_a_row_that_no_group_can_hold_is_refused_at_once(tmp_path: Path, model: str) -> None:
    schema = patients(tmp_path, "{model: k_anonymity, k: 2}", model)
    row = {"patient": 1, "age": 31, "home": {"zip": "02139", "ward": "B"}, "sex": "f", "illness": "flu"}
    payload = json.dumps(row).encode()
    result = Encoder(schema).encode([payload], np.array([[0, 7]]), np.zeros(1))
    assert result.rejections == [Rejection(0, Reject.UNPLACEABLE, "illness")]
    assert len(result.batch) == 0


FINE = [
    # remark, payload
    ("as it should be", changed()),
    ("fields nobody declared", changed(name=MARK, shoe=44, more={"deep": [1, {"x": MARK}]})),
    ("bytes that are no text, where nobody looks", changed(shoe="S").replace(b'"S"', b'"\xff"')),
    ("the last of equal keys counts", b'{"age": 5, ' + changed()[1:]),
    ("blanks around it", b"\n " + changed() + b"\r\n"),
    ("no guard, no wish", changed(guard=..., wish=...)),
    ("an empty guard", changed(guard="", wish=None)),
    ("a guard at the value itself", changed(guard="flu")),
    ("a guard at the root", changed(guard="any")),
    ("any text for a person", changed(patient="é\u0000\U0001f600")),
    ("any number for a person", changed(patient=10**400)),
    ("a fraction for an insensitive field", changed(home={"zip": "02139", "ward": 2.5})),
]


@pytest.mark.parametrize("payload", [c[1] for c in FINE], ids=[c[0] for c in FINE])
def test_records_that_are_fine(tmp_path: Path, payload: bytes) -> None:
    result = encode(patients(tmp_path), payload)
    assert result.rejections == []
    assert result.batch.qi.tolist() == [[39, 2139]]
    assert result.batch.values[0, 0] == "flu"


def test_columns(tmp_path: Path) -> None:
    schema = patients(tmp_path)
    rows = [changed(), changed(patient=2, guard=..., wish=-1), changed(guard="flu", wish=..., home={"zip": 10115})]
    batch = encode(schema, *rows).batch
    tree = schema.sensitive[0].hierarchy
    assert isinstance(tree, Tree)
    assert batch.qi.tolist() == [[39, 2139], [39, 2139], [39, 10115]]
    assert batch.sensitive[:, 0].tolist() == [tree.labels.index("flu")] * 3
    assert batch.guard[:, 0].tolist() == [tree.labels.index("lung"), NO_GUARD, tree.labels.index("flu")]
    assert batch.psf[:, 0].tolist() == [1, -1, 0]
    assert batch.values.tolist() == [["flu", "B"], ["flu", "B"], ["flu", None]]
    assert batch.ref.tolist() == [[2, 100], [2, 101], [2, 102]]
    assert batch.subject[0] == batch.subject[2] != batch.subject[1]
    assert not {1, 2} & set(batch.subject.tolist())


def test_subjects_are_keyed_by_their_process() -> None:
    program = (
        "from stream_anon.core.keys import hash_subjects as h\n"
        "from stream_anon.core.spelling import EVERY_RULE, Spelling\n"
        "print(h(['Ann', ' aNN ', 'Bo', 7, '7'], Spelling(EVERY_RULE))[0].tolist())"
    )
    command, keyed = [sys.executable, "-c", program], {k: v for k, v in os.environ.items() if k != "PYTHONHASHSEED"}
    told = [subprocess.run(command, env=keyed, capture_output=True, check=True).stdout for _ in range(2)]
    first, second = map(json.loads, told)
    assert first[0] == first[1] != first[2]
    assert first[3] == first[4]
    assert not set(first) & set(second)


def test_no_records(tmp_path: Path) -> None:
    result = encode(patients(tmp_path))
    assert (len(result.batch), result.rejections) == (0, [])


SHOP = """
version: 1
name: shop
attributes:
  age: {{role: quasi_identifier, type: integer, {absent}, hierarchy: {{kind: interval, range: [0, 99], snap: none}}}}
  size: {{role: quasi_identifier, type: number, {absent}, hierarchy: {{kind: interval, range: [0, 9], step: 0.5}}}}
  zip: {{role: quasi_identifier, type: category, {absent}, hierarchy: {{kind: prefix, length: 2}}}}
  sex: {{role: quasi_identifier, type: category, {absent}, hierarchy: {{kind: flat, values: [f, m, "1", "true"]}}}}
  day: {{role: quasi_identifier, type: timestamp, {absent}, hierarchy: {{kind: calendar, levels: [day, year]}}}}
  note: {{role: sensitive, missing: {missing}}}
privacy: [{{model: k_anonymity, k: 2}}]
"""
LEAF = "missing: leaf, unknown: leaf"
REJECT = "missing: reject, unknown: reject"
FULL = {"age": 5, "size": 1.25, "zip": "10", "sex": "f", "day": "2026-03-08", "note": "n"}
UNKNOWN = {"age": 100, "size": 9.01, "zip": "1", "sex": "x", "day": "soon"}
LEAF_LABELS = {"age": None, "size": None, "zip": "(missing)", "sex": "(missing)", "day": "(missing)"}


@pytest.mark.parametrize("column", list(UNKNOWN))
def test_what_an_absence_gets(tmp_path: Path, column: str) -> None:
    rejecting = compile_policy(tmp_path, SHOP.format(absent=REJECT, missing="reject"))
    keeping = compile_policy(tmp_path, SHOP.format(absent=LEAF, missing="leaf"))
    rows = [json.dumps(FULL | {column: value}).encode() for value in (FULL[column], None, UNKNOWN[column])]
    refused = encode(rejecting, *rows).rejections
    assert [(r.index, r.code, r.column) for r in refused] == [(1, Reject.MISSING, column), (2, Reject.UNKNOWN, column)]
    kept = encode(keeping, *rows)
    assert kept.rejections == []
    q = list(UNKNOWN).index(column)
    codes = kept.batch.qi[:, q].tolist()
    assert len(set(codes)) == 3, "known, missing and unknown are three values"
    hierarchy = keeping.quasi[q].hierarchy
    assert hierarchy.label(codes[1], codes[1]) == LEAF_LABELS[column]
    assert hierarchy.loss(np.array(codes), np.array(codes)).tolist() == [0.0, 0.0, 0.0]
    assert hierarchy.loss(np.array(min(codes)), np.array(max(codes))) == 1.0


def test_a_sensitive_value_without_hierarchy(tmp_path: Path) -> None:
    rejecting = compile_policy(tmp_path, SHOP.format(absent=REJECT, missing="reject"))
    keeping = compile_policy(tmp_path, SHOP.format(absent=REJECT, missing="leaf"))
    rows = [json.dumps(FULL | {"note": note}).encode() for note in ("a", "b", "a", None, 1, "1")]
    assert [(r.index, r.code, r.column) for r in encode(rejecting, *rows).rejections] == [(3, Reject.MISSING, "note")]
    codes = encode(keeping, *rows).batch.sensitive[:, 0].tolist()
    assert codes[0] == codes[2]
    assert codes[4] == codes[5], "known by its text, as in a tree"
    assert len(set(codes)) == 4


def test_equal_values_have_equal_codes_whatever_came_before(tmp_path: Path) -> None:
    """1 and true are one key to Python's dictionaries; which of them came first must not matter."""
    text = SHOP.format(absent=REJECT, missing="reject")
    schema = compile_policy(
        tmp_path, text.replace("name: shop", "name: shop\nsecret: 0123456789abcdef0123456789abcdef")
    )
    again = compile_policy(tmp_path, (tmp_path / "policy.yaml").read_text())
    notes = [1, True, 0, False, "1", "true"]

    def codes(compiled: Schema, values: list[Any]) -> list[int]:
        rows = [json.dumps(FULL | {"note": value}).encode() for value in values]
        return encode(compiled, *rows).batch.sensitive[:, 0].tolist()

    found = codes(schema, notes)
    assert found == codes(again, notes[::-1])[::-1]
    assert [found.index(code) for code in found] == [0, 1, 2, 3, 0, 1]


def test_categories_may_be_numbers_and_truths(tmp_path: Path) -> None:
    schema = compile_policy(tmp_path, SHOP.format(absent=REJECT, missing="reject"))
    rows = [json.dumps(FULL | {"sex": value}).encode() for value in ("1", 1, True, "true", "f")]
    assert encode(schema, *rows).batch.qi[:, 3].tolist() == [2, 2, 3, 3, 0]


def test_without_a_subject_each_record_is_somebody(tmp_path: Path) -> None:
    schema = compile_policy(tmp_path, SHOP.format(absent=REJECT, missing="reject"))
    payloads = [json.dumps(FULL).encode()] * 4
    ref = np.array([[0, 5], [0, 6], [1, 5], [0, 5]])
    subjects = Encoder(schema).encode(payloads, ref, np.zeros(4)).batch.subject.tolist()
    assert len(set(subjects)) == 3
    assert subjects[0] == subjects[3]


CELLS = [
    # remark, changed cells, rejection or None
    ("a line of text", {}, None),
    ("an empty cell is missing", {"age": ""}, (Reject.MISSING, "age")),
    ("a missing column", {"age": ...}, (Reject.MISSING, "age")),
    ("no number", {"age": MARK}, (Reject.WRONG_TYPE, "age")),
    ("a fraction", {"age": "5.5"}, (Reject.WRONG_TYPE, "age")),
    ("beyond the range", {"age": "100"}, (Reject.UNKNOWN, "age")),
    ("four hundred digits", {"age": "9" * 400}, (Reject.UNKNOWN, "age")),
    ("not a number", {"size": "nan"}, (Reject.UNKNOWN, "size")),
    ("without end", {"size": "inf"}, (Reject.UNKNOWN, "size")),
    ("a whole number for a decimal", {"size": "1"}, None),
    ("digits are a category", {"sex": "1"}, None),
    ("a truth is a category", {"sex": "true"}, None),
    ("no leaf", {"sex": MARK}, (Reject.UNKNOWN, "sex")),
    ("no instant", {"day": MARK}, (Reject.UNKNOWN, "day")),
    ("a Unix time", {"day": "1772928000000"}, None),
    ("columns nobody declared", {"name": MARK, "": MARK}, None),
]


@pytest.mark.parametrize(("cells", "refused"), [c[1:] for c in CELLS], ids=[c[0] for c in CELLS])
def test_cells_of_a_table(tmp_path: Path, cells: dict[str, Any], refused: tuple[Reject, str] | None) -> None:
    schema = compile_policy(tmp_path, SHOP.format(absent=REJECT, missing="reject"))
    line = {name: value for name, value in ({k: str(v) for k, v in FULL.items()} | cells).items() if value is not ...}
    result = Encoder(schema).encode([line], *refs(1))
    assert [(r.code, r.column) for r in result.rejections] == ([] if refused is None else [refused])
    assert len(result.batch) == (refused is None)
    assert MARK not in repr(result)


def test_cells_and_records_agree(tmp_path: Path) -> None:
    schema = patients(tmp_path)
    line = {"patient": "p1", "age": "39", "home.zip": "02139", "home.ward": "B", "illness": "flu", "wish": "-1"}
    nested = {"patient": "p1", "age": 39, "home": {"zip": "02139", "ward": "B"}, "illness": "flu", "wish": -1}
    one = Encoder(schema).encode([line], *refs(1)).batch
    other = encode(schema, json.dumps(nested).encode()).batch
    for column in ("qi", "sensitive", "guard", "psf", "subject", "ref", "values"):
        assert getattr(one, column).tolist() == getattr(other, column).tolist()


def test_no_object_of_the_core_shows_a_value(tmp_path: Path) -> None:
    schema = patients(tmp_path, secret="a-secret-that-is-long-enough-" + MARK)
    payloads = [changed(patient=MARK, name=MARK, home={"zip": "73519", "ward": MARK}, age=117)]
    encoder = Encoder(schema)
    result = encoder.encode(payloads, *refs(1))
    for thing in (
        schema,
        schema.keys,
        schema.requirements,
        encoder,
        result,
        result.batch,
        *schema.quasi,
        *schema.sensitive,
    ):
        for text in (repr(thing), str(thing)):
            assert MARK not in text
            assert "73519" not in text
            assert "117" not in text


def test_equal_sensitive_texts_are_one_object(tmp_path: Path) -> None:
    """Rows wait by the million, and few values of theirs differ."""
    encoder = Encoder(patients(tmp_path))
    one, other = (encoder.encode([changed(), changed()], *refs(2)).batch.values[:, 0] for _ in range(2))
    assert one.tolist() == ["flu"] * 2
    assert len({id(value) for value in (*one, *other)}) == 1
