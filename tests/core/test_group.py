"""The gate: what it lets through, what it refuses, and that it says the same thing twice."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from building import compile_policy, patients
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoder
from stream_anon.core.gate import Group, Reason, Released, _ascending, release, release_all
from stream_anon.core.publish import encode_all
from stream_anon.core.record_template import ENVELOPE, RecordTemplate, each_as_json
from stream_anon.core.schema import Schema
from stream_anon.errors import PrivacyViolation

ROWS: list[dict[str, Any]] = [
    {"patient": 1, "name": "Ann", "age": 31, "home": {"zip": "02139", "ward": "B", "street": "Elm"}, "illness": "flu"},
    {"patient": 2, "name": "Bob", "age": 35, "home": {"zip": "02138", "ward": "C"}, "illness": "ulcer", "wish": 1},
    {"patient": 3, "name": "Cem", "age": 33, "home": {"zip": "02131", "ward": "B"}, "illness": "cough", "shoe": 44},
    {"patient": 3, "name": "Cem", "age": 33, "home": {"zip": "02131", "ward": None}, "illness": "asthma"},
]
START = 700_000


def encoded(schema: Schema, rows: list[dict[str, Any]]) -> Batch:
    payloads = [json.dumps(row).encode() for row in rows]
    ref = np.stack([np.full(len(rows), 3), START + np.arange(len(rows))], axis=1)
    result = Encoder(schema).encode(payloads, ref, np.zeros(len(rows)))
    assert result.rejections == []
    return result.batch


def test_a_published_record(tmp_path: Path) -> None:
    schema = patients(tmp_path)
    group = release(encoded(schema, ROWS), schema, Reason.READY)
    records = [json.loads(record) for record in group.encoded()]
    assert sorted((r["home"]["ward"] or "", r["illness"]) for r in records) == [
        ("", "asthma"),
        ("B", "cough"),
        ("B", "flu"),
        ("C", "ulcer"),
    ]
    for number, record in enumerate(records):
        assert list(record) == ["age", "home", "illness", ENVELOPE]
        assert record["age"] == [31, 35]
        assert list(record["home"]) == ["zip", "ward"]
        assert record["home"]["zip"] == "0213*"
        envelope = record[ENVELOPE]
        assert list(envelope) == ["policy", "group", "row", "size", "subjects", "loss"]
        assert envelope["policy"] == f"patients@{schema.fingerprint[:6]}"
        assert (envelope["group"], envelope["row"]) == (group.id, number)
        assert (envelope["size"], envelope["subjects"]) == (4, 3)
        assert envelope["loss"] == pytest.approx((4 / 120 + 1 / 5) / 2, abs=1e-4)


def test_nothing_undeclared_and_no_origin_is_published(tmp_path: Path) -> None:
    schema = patients(tmp_path)
    group = release(encoded(schema, ROWS), schema, Reason.READY)
    text = b"\n".join(group.encoded()).decode()
    for word in ("Ann", "Bob", "Cem", "patient", "name", "Elm", "street", "shoe", "44", "wish", "guard"):
        assert word not in text.replace('"policy":"patients@', "")
    assert str(START) not in text
    assert not set(map(str, group.rows.subject.tolist())) & set(text.replace('"', " ").split())
    assert all(word not in repr(group) + str(group) for word in ("flu", "ulcer", "31", "0213"))


def test_the_same_members_are_published_in_the_same_bytes(tmp_path: Path) -> None:
    schema = patients(tmp_path)
    rows = encoded(schema, ROWS)
    once = release(rows, schema, Reason.READY)
    again = release(rows.take([2, 0, 3, 1]), schema, Reason.DEADLINE)
    assert once.encoded() == again.encoded()
    assert once.id == again.id
    compiled_again = patients(tmp_path)
    assert release(encoded(compiled_again, ROWS), compiled_again, Reason.READY).encoded() == once.encoded()


ages = st.integers(0, 120)
people = st.integers(0, 9)
illnesses = st.sampled_from(["ulcer", "gastritis", "flu", "cough", "asthma"])


@st.composite
def many_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = draw(st.lists(st.tuples(people, ages, st.integers(0, 99_999), illnesses), min_size=3, max_size=12))
    return [
        {"patient": p, "age": age, "home": {"zip": f"{code:05d}"}, "illness": illness} for p, age, code, illness in rows
    ]


@given(rows=many_rows(), data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_group_is_safe_covers_its_rows_and_does_not_depend_on_their_order(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], data: st.DataObject
) -> None:
    schema = shared_schema(tmp_path_factory)
    batch = encoded(schema, rows)
    if len({row["patient"] for row in rows}) < 2:
        with pytest.raises(PrivacyViolation):
            release(batch, schema, Reason.BATCH)
        return
    group = release(batch, schema, Reason.BATCH)
    order = data.draw(st.permutations(range(len(rows))))
    assert release(batch.take(order), schema, Reason.BATCH).encoded() == group.encoded()
    assert (group.low <= group.rows.qi).all()
    assert (group.rows.qi <= group.high).all()
    for row in rows:
        assert schema.quasi[0].hierarchy.contains(group.labels[0], row["age"])
        assert schema.quasi[1].hierarchy.contains(group.labels[1], row["home"]["zip"])
    assert sorted(r["illness"] for r in group.records()) == sorted(row["illness"] for row in rows)


_SCHEMAS: list[Schema] = []


def shared_schema(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    """One schema for all examples: compiling is slower than releasing."""
    if not _SCHEMAS:
        _SCHEMAS.append(patients(tmp_path_factory.mktemp("policy")))
    return _SCHEMAS[0]


def test_many_groups_at_once_are_the_groups_one_by_one(tmp_path: Path) -> None:
    schema = patients(tmp_path)
    rows = encoded(schema, ROWS + ROWS)
    chosen = np.array([7, 2, 5, 0, 1, 6, 3])
    together = release_all(rows, chosen, [3, 4], schema, [Reason.READY, Reason.FLUSH])
    apart = [release(rows.take(part), schema, Reason.READY) for part in (chosen[:3], chosen[3:])]
    assert [group.encoded() for group in together] == [group.encoded() for group in apart]
    assert list(encode_all(together)) == [group.encoded() for group in apart]
    assert list(encode_all([together[1], apart[0]])) == [together[1].encoded(), apart[0].encoded()]
    for one, other in zip(together, apart, strict=True):
        assert one.rows.ref.tolist() == other.rows.ref.tolist()
        assert one.members.tolist() == other.members.tolist() == sorted(one.rows.ref.tolist())
        assert (one.id, one.labels, one.people, len(one)) == (other.id, other.labels, other.people, len(other.rows))
        assert (one.loss, one.losses.tolist()) == (other.loss, other.losses.tolist())
    assert [group.reason for group in together] == [Reason.READY, Reason.FLUSH]


def test_members_are_in_order_in_any_partition(tmp_path: Path) -> None:
    schema = patients(tmp_path)
    rows = encoded(schema, ROWS)
    rows.ref[:, 0] = [5, 40_000, 7, 2**31 - 1]
    group = release(rows, schema, Reason.READY)
    assert group.members.tolist() == sorted(rows.ref.tolist())


def test_values_in_more_lines_than_one_stop_everything() -> None:
    with pytest.raises(PrivacyViolation, match="lines"):
        each_as_json([msgspec.Raw(b'{\n"a": 1}'), 2])


def test_one_unsafe_group_stops_all_of_them(tmp_path: Path) -> None:
    schema = patients(tmp_path)
    rows = encoded(schema, ROWS)
    for sizes in ([2, 2], [3, 1], [4, 0]):
        with pytest.raises(PrivacyViolation):
            release_all(rows, np.arange(4), sizes, schema, [Reason.READY] * len(sizes))
    with pytest.raises(PrivacyViolation, match="twice"):
        release_all(rows, np.array([0, 1, 2, 0, 3]), [3, 2], schema, [Reason.READY] * 2)
    with pytest.raises(ValueError, match="add up"):
        release_all(rows, np.arange(4), [2], schema, [Reason.READY])


def row_order(group: Group) -> list[int]:
    return group.rows.ref[:, 1].tolist()


def test_id_and_order_are_of_the_secret_the_policy_and_the_members(tmp_path: Path) -> None:
    schema = patients(tmp_path)
    rows = encoded(schema, ROWS * 3)
    group = release(rows, schema, Reason.READY)
    others = {
        "secret": patients(tmp_path, secret="another secret, as long as the first one"),
        "policy": patients(tmp_path, "{model: k_anonymity, k: 3}"),
    }
    for other in others.values():
        changed = release(encoded(other, ROWS * 3), other, Reason.READY)
        assert changed.id != group.id
        assert row_order(changed) != row_order(group)
    fewer = release(rows.take(slice(0, 11)), schema, Reason.READY)
    assert fewer.id != group.id
    assert row_order(group) != sorted(row_order(group))


def test_without_a_secret_nothing_can_be_repeated(tmp_path: Path) -> None:
    text = (
        "version: 1\nname: p\nattributes:\n"
        "  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 120], snap: none}}\n"
        "privacy: [{model: k_anonymity, k: 2}]\n"
    )
    groups = []
    for _ in range(2):
        schema = compile_policy(tmp_path, text)
        assert not schema.keys.stable
        groups.append(release(encoded(schema, ROWS), schema, Reason.READY))
    assert groups[0].id != groups[1].id


FAILING = [
    # remark, model, its name in the refusal
    ("too few people", "{model: k_anonymity, k: 4}", "k_anonymity"),
    ("too few values", "{model: l_diversity, attribute: illness, l: 5}", "l_diversity"),
    ("too uneven", "{model: l_diversity, attribute: illness, l: 5, variant: entropy}", "l_diversity"),
    ("one too frequent", "{model: l_diversity, attribute: illness, l: 4, c: 1, variant: recursive}", "l_diversity"),
    ("a share above c", "{model: lc_anonymity, attribute: illness, l: 2, c: 0.3}", "lc_anonymity"),
    ("a demanding value", "{model: lc_anonymity, attribute: illness, c: 1, values: {flu: {l: 5}}}", "lc_anonymity"),
    ("a share above alpha", "{model: alpha_k, attribute: illness, k: 2, alpha: {flu: 0.3}}", "alpha_k"),
    ("too few people for alpha", "{model: alpha_k, attribute: illness, k: 4, alpha: 1}", "alpha_k"),
    ("too far", "{model: t_closeness, attribute: illness, t: 0.1, reference: t.csv}", "t_closeness"),
    ("no way to hide", "{model: guarding_node, attribute: illness, p: 0.01}", "guarding_node"),
    ("nothing learned", "{model: t_closeness, attribute: illness, t: 1, estimate: {after: 9}}", "t_closeness"),
]


@pytest.mark.parametrize(("model", "name"), [c[1:] for c in FAILING], ids=[c[0] for c in FAILING])
def test_the_gate_refuses(tmp_path: Path, model: str, name: str) -> None:
    (tmp_path / "t.csv").write_text("value;weight\nulcer;9\nflu;1\ncough;1\nasthma;1\n", encoding="utf-8")
    schema = patients(tmp_path, "{model: k_anonymity, k: 2}", model)
    rows = encoded(schema, [row | {"guard": row["illness"]} for row in ROWS])
    with pytest.raises(PrivacyViolation, match=name) as caught:
        release(rows, schema, Reason.FLUSH)
    assert caught.value.exit_code == 70
    assert all(row["illness"] not in str(caught.value) for row in ROWS)


def test_an_empty_group_is_refused(tmp_path: Path) -> None:
    schema = patients(tmp_path)
    with pytest.raises(PrivacyViolation):
        release(encoded(schema, ROWS).take([]), schema, Reason.READY)


def test_there_is_no_other_way_to_a_group(tmp_path: Path) -> None:
    schema = patients(tmp_path)
    rows = encoded(schema, ROWS)
    group = release(rows, schema, Reason.READY)
    released = group.released
    parts = {f.name: getattr(released, f.name) for f in dataclasses.fields(released)}
    with pytest.raises(TypeError):
        Released(**parts)
    with pytest.raises(PrivacyViolation):
        Released(**parts, seal=object())
    with pytest.raises((ValueError, TypeError)):
        dataclasses.replace(released, rows=rows.take([0]))
    with pytest.raises(dataclasses.FrozenInstanceError):
        released.rows = rows.take([0])  # type: ignore[misc]
    assert "seal" not in Released.__slots__
    with pytest.raises(PrivacyViolation):
        Group(SimpleNamespace(**parts), 0)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        group.rows = rows.take([0])  # type: ignore[misc]
    assert copy.copy(group).id == group.id


def test_raised_values_are_published_as_their_ancestor(tmp_path: Path) -> None:
    schema = patients(tmp_path, "{model: k_anonymity, k: 2}", "{model: guarding_node, attribute: illness, p: 0.4}")
    rows = [ROWS[0] | {"guard": "lung"}, ROWS[1], ROWS[2] | {"guard": ""}]
    group = release(encoded(schema, rows), schema, Reason.READY)
    # flu and cough lie below "lung", which has 3 of 5 leaves: only both raised to the root give (0.6 + 0.6) / 3 = 0.4
    assert sorted(record["illness"] for record in group.records()) == ["any", "any", "ulcer"]
    assert group.encoded() == release(encoded(schema, rows), schema, Reason.READY).encoded()
    assert "flu" in group.rows.values[:, 0], "the rows themselves stay as they came"


def test_what_was_asked_for_is_obeyed_and_not_published(tmp_path: Path) -> None:
    schema = patients(tmp_path, "{model: k_anonymity, k: 2}", "{model: guarding_node, attribute: illness, p: 0.5}")
    rows = [ROWS[0] | {"guard": "flu", "wish": 1}, ROWS[1] | {"guard": "ulcer", "wish": -1}]
    group = release(encoded(schema, rows), schema, Reason.READY)
    assert sorted(record["illness"] for record in group.records()) == ["flu", "ulcer"]
    assert all(set(record) == {"age", "home", "illness", ENVELOPE} for record in group.records())


LIST_POLICY = """
version: 1
name: shops
secret: 0123456789abcdef0123456789abcdef
attributes:
  nation: {role: quasi_identifier, type: category, hierarchy: {kind: set, values: [peru, chad, oman]}}
  basket: {role: insensitive, list: true}
privacy: [{model: k_anonymity, k: 2}]
"""


def test_sets_and_lists(tmp_path: Path) -> None:
    schema = compile_policy(tmp_path, LIST_POLICY)
    rows = [
        {"nation": "peru", "basket": [1, 2]},
        {"nation": "chad", "basket": [3, 4]},
        {"nation": "peru", "basket": []},
    ]
    group = release(encoded(schema, rows), schema, Reason.READY)
    assert all(record["nation"] == ["chad", "peru"] for record in group.records())
    assert sorted(map(str, (record["basket"] for record in group.records()))) == ["[1, 2]", "[3, 4]", "[]"]
    assert group.loss == pytest.approx(2 / 3)


FLAT_POLICY = """
version: 1
name: flat
secret: 0123456789abcdef0123456789abcdef
attributes:
  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 120], snap: none}}
  nation: {role: quasi_identifier, type: category, hierarchy: {kind: flat, values: [peru, chad, oman]}}
%s
privacy: [{model: k_anonymity, k: 2}]
"""
MORE = ["", "  illness: {role: sensitive, type: category}", "  'n° te': {role: insensitive, list: true}"]


@pytest.mark.parametrize("more", [*MORE, "\n".join(MORE[1:])])
def test_what_is_shared_is_written_once_and_reads_the_same(tmp_path: Path, more: str) -> None:
    schema = compile_policy(tmp_path, FLAT_POLICY % more)
    assert schema.template.flat
    rows: list[dict[str, Any]] = [
        {"age": i, "nation": "peru", "illness": 'a "row":0,', "n° te": note}
        for i, note in enumerate([None, ["row", 0, "é\u2028"], "%b%d", 1.5] * 3)
    ]
    group = release(encoded(schema, rows), schema, Reason.READY)
    assert group.encoded() == [msgspec.json.encode(record) for record in group.records()]


def test_raised_values_are_raised_in_flat_records_too(tmp_path: Path) -> None:
    schema = patients(tmp_path, "{model: k_anonymity, k: 2}", "{model: guarding_node, attribute: illness, p: 0.4}")
    rows = [ROWS[0] | {"guard": "lung"}, ROWS[1], ROWS[2] | {"guard": ""}]
    group = release(encoded(schema, rows), schema, Reason.READY)
    names = {name: name.replace(".", "_") for name in ("home.zip", "home.ward")}
    quasi = tuple(dataclasses.replace(column, name=names.get(column.name, column.name)) for column in schema.quasi)
    template = RecordTemplate(
        [(column.name, column.hierarchy) for column in quasi], [names.get(n, n) for n in schema.published], "p"
    )
    flat = dataclasses.replace(schema, quasi=quasi, template=template)
    assert template.flat
    assert not schema.template.flat
    object.__setattr__(group.released, "schema", flat)
    assert group.encoded() == [msgspec.json.encode(record) for record in group.records()]
    assert sorted(json.loads(record)["illness"] for record in group.encoded()) == ["any", "any", "ulcer"]


def test_equal_numbers_stay_in_their_order() -> None:
    numbers = np.random.default_rng(1).integers(0, 50, 1_000).astype(np.uint64)
    assert np.array_equal(_ascending(numbers), np.argsort(numbers, kind="stable"))
