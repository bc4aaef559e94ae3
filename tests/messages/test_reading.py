"""What becomes of messages as their schemas change, and of bytes that nobody meant well."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from message_shelf import BASE, HOME, ROW, TYPES, Shelf, avro, field, first, read, reader, record

from stream_anon.core.decode import Payload, Reject
from stream_anon.formats.messages.avro.reading import AvroMessages, avro_messages
from stream_anon.formats.messages.framing import frame
from stream_anon.formats.messages.registry import RegistryAwayError, Schema

GOOD: list[tuple[str, list[Any], dict[str, Any], dict[str, Any]]] = [
    ("as it was", BASE, ROW, {"who": "p1", "age": 41, "home.zip": "021", "ill": "flu", "pay": None}),
    ("a field that nobody declared", [*BASE, field("ssn", "string")], ROW | {"ssn": "SECRET"}, {"pay": None}),
    ("a declared field is added", [*BASE, field("pay", "double")], ROW | {"pay": 1.5}, {"pay": 1.5}),
    ("a declared field is removed", BASE[:3], {k: ROW[k] for k in ("who", "age", "home")}, {"ill": None}),
    ("int becomes long", [field("age", "long"), *BASE[2:]], ROW, {"age": 41}),
    ("a field becomes nullable", [field("age", ["null", "int"]), *BASE[2:]], ROW | {"age": None}, {"age": None}),
    ("null stands behind", [field("age", ["int", "null"]), *BASE[2:]], ROW, {"age": 41}),
    ("text becomes an enum", [field("ill", {"type": "enum", "name": "I", "symbols": ["flu"]})], ROW, {"ill": "flu"}),
    (
        "an enum grows",
        [field("ill", {"type": "enum", "name": "I", "symbols": ["new", "flu"]})],
        {"ill": "new"},
        {"ill": "new"},
    ),
    ("the fields change places", BASE[::-1], ROW, {"who": "p1", "age": 41, "home.zip": "021"}),
    ("a record becomes nullable", [field("home", ["null", HOME])], {"home": None}, {"home.zip": None}),
    ("a record becomes a map", [field("home", {"type": "map", "values": "string"})], ROW, {"home.zip": "021"}),
    (
        "a key of the map is missing",
        [field("home", {"type": "map", "values": "string"})],
        {"home": {}},
        {"home.zip": None},
    ),
    (
        "a decimal",
        [field("pay", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})],
        {"pay": Decimal("12.50")},
        {"pay": 12.5},
    ),
    ("a date", [field("at", {"type": "int", "logicalType": "date"})], {"at": date(2024, 2, 29)}, {"at": "2024-02-29"}),
    (
        "an instant in milliseconds",
        [field("at", {"type": "long", "logicalType": "timestamp-millis"})],
        {"at": datetime(2024, 2, 29, 12, tzinfo=UTC)},
        {"at": "2024-02-29T12:00:00+00:00"},
    ),
    (
        "an instant in microseconds",
        [field("at", ["null", {"type": "long", "logicalType": "timestamp-micros"}])],
        {"at": datetime(2024, 2, 29, 12, 0, 0, 5, tzinfo=UTC)},
        {"at": "2024-02-29T12:00:00.000005+00:00"},
    ),
    (
        "a UUID",
        [field("who", {"type": "string", "logicalType": "uuid"})],
        {"who": UUID(int=7)},
        {"who": "00000000-0000-0000-0000-000000000007"},
    ),
    ("renamed by alias", [field("sickness", "string", aliases=["ill"])], {"sickness": "flu"}, {"ill": "flu"}),
    (
        "renamed among others that are not plain",
        [field("sum", {"type": "int", "logicalType": "date"}, aliases=["at"]), field("pay", "double")],
        {"sum": date(2024, 2, 29), "pay": 1.5},
        {"at": "2024-02-29", "pay": 1.5},
    ),
    (
        "renamed inside a record that was renamed",
        [field("house", ["null", HOME | {"fields": [field("code", "string", aliases=["zip"])]}], aliases=["home"])],
        {"house": {"code": "021"}},
        {"home.zip": "021"},
    ),
    (
        "a name that is declared itself is no other field's",
        [field("ill", "string"), field("age", "int", aliases=["ill", "pay"])],
        ROW,
        {"ill": "flu", "age": 41, "pay": None},
    ),
    ("a union of two types", [field("ill", ["null", "int", "string"])], {"ill": 7}, {"ill": 7}),
]


@pytest.mark.parametrize(("fields", "value", "expected"), [case[1:] for case in GOOD], ids=[case[0] for case in GOOD])
def test_schemas_change(fields: list[Any], value: dict[str, Any], expected: dict[str, Any]) -> None:
    """Both versions in one batch: each message is read by the schema that it names."""
    shelf = Shelf(Schema("AVRO", json.dumps(record(*BASE))), Schema("AVRO", json.dumps(record(*fields))))
    payloads = [avro(record(*BASE), ROW, 0), avro(record(*fields), value, 1), avro(record(*BASE), ROW, 0)]
    found = read(shelf, payloads)
    assert not found.refused
    assert {name: found.values[name][1] for name in expected} == expected
    assert [values[0] for values in found.values.values()] == [values[2] for values in found.values.values()]
    assert "SECRET" not in str(found)
    assert shelf.asked == 2, "a schema is fetched once"


BAD: list[tuple[str, list[Any], dict[str, Any], Reject, str]] = [
    ("text for a number", [field("age", "string")], {"age": "41"}, Reject.WRONG_TYPE, "age"),
    ("a fraction for an integer", [field("age", "double")], {"age": 41.0}, Reject.WRONG_TYPE, "age"),
    ("a truth for an integer", [field("age", "boolean")], {"age": True}, Reject.WRONG_TYPE, "age"),
    ("no number at all", [field("pay", "double")], {"pay": float("nan")}, Reject.WRONG_TYPE, "pay"),
    ("a number without end", [field("pay", "float")], {"pay": float("inf")}, Reject.WRONG_TYPE, "pay"),
    ("bytes", [field("ill", "bytes")], {"ill": b"flu"}, Reject.WRONG_TYPE, "ill"),
    ("a list", [field("ill", {"type": "array", "items": "string"})], {"ill": ["flu"]}, Reject.WRONG_TYPE, "ill"),
    ("a record", [field("ill", HOME)], {"ill": {"zip": "SECRET"}}, Reject.WRONG_TYPE, "ill"),
]


@pytest.mark.parametrize(("fields", "value", "code", "column"), [c[1:] for c in BAD], ids=[c[0] for c in BAD])
def test_values_that_a_field_may_not_have(fields: list[Any], value: dict[str, Any], code: Reject, column: str) -> None:
    shelf = Shelf(Schema("AVRO", json.dumps(record(*fields))))
    found = read(shelf, [avro(record(*fields), value)])
    assert [(r.code, r.column) for r in found.refused.values()] == [(code, column)]
    assert not len(found.kept)
    assert "SECRET" not in str(found)


def test_codes_of_messages_that_cannot_be_read() -> None:
    good = avro(record(*BASE), ROW)
    shelf = Shelf(Schema("AVRO", json.dumps(record(*BASE))), Schema("XML", "<a/>"), Schema("AVRO", '"string"'))
    payloads: list[Payload] = [
        good,
        good + b"more",
        good[:-2],
        frame(9) + b"x",
        frame(1) + b"x",
        b"\0\0",
        None,
        frame(2) + b"\x06flu",
        b'{"who": "p", "age": 3}',
        b"no JSON",
    ]
    found = read(shelf, payloads)
    assert found.kept.tolist() == [0, 8]
    assert found.values["age"] == [41, 3]
    assert {i: r.code for i, r in found.refused.items()} == {
        1: Reject.NOT_BY_SCHEMA,
        2: Reject.NOT_BY_SCHEMA,
        3: Reject.UNKNOWN_SCHEMA,
        4: Reject.UNUSABLE_SCHEMA,
        5: Reject.UNKNOWN_SCHEMA,
        6: Reject.TOMBSTONE,
        7: Reject.NOT_OBJECT,
        9: Reject.NOT_JSON,
    }


def test_two_fields_of_one_alias_make_a_schema_unusable() -> None:
    twice = record(field("sickness", "string", aliases=["ill"]), field("remark", "string", aliases=["ill"]))
    found = read(Shelf(Schema("AVRO", json.dumps(twice))), [frame(0) + b"\x06flu\x0cSECRET"])
    assert [r.code for r in found.refused.values()] == [Reject.UNUSABLE_SCHEMA]
    assert "SECRET" not in str(found)


def test_while_the_registry_is_away_nothing_is_rejected() -> None:
    shelf = Shelf(Schema("AVRO", json.dumps(record(*BASE))))
    made, payload = reader(shelf), avro(record(*BASE), ROW)
    shelf.away = True
    for _ in range(3):
        with pytest.raises(RegistryAwayError):
            made.columns([payload])
    shelf.away = False
    for _ in range(100):
        try:
            found = made.columns([payload])
            break
        except RegistryAwayError:
            continue
    assert found.values["age"] == [41]
    shelf.away = True
    assert made.columns([payload] * 5).values["age"] == [41] * 5, "what is known is known"


def test_made_up_numbers_are_fetched_a_few_at_a_time() -> None:
    shelf = Shelf()
    made = reader(shelf)
    payloads = [frame(number) + b"x" for number in range(100, 150)]
    with pytest.raises(RegistryAwayError):
        made.learn(payloads)
    assert shelf.asked <= 20
    assert len(read(shelf, payloads).refused) == 50


BOMBS = [
    {"type": "array", "items": "null"},
    {"type": "array", "items": {"type": "record", "name": "Nothing", "fields": []}},
    {"type": "array", "items": {"type": "fixed", "name": "None", "size": 0}},
    ["null", {"type": "map", "values": {"type": "array", "items": "null"}}],
]


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_schema_by_which_few_bytes_become_billions_is_not_used(bomb: Any) -> None:
    """Without the check, the first of these messages would take gigabytes."""
    from stream_anon.formats.messages.varint import signed

    schema = record(field("age", "int"), field("others", bomb))
    body = signed(41) + signed(1 << 40) + b"\0"
    found = read(Shelf(Schema("AVRO", json.dumps(schema))), [frame(0) + body])
    assert [r.code for r in found.refused.values()] == [Reject.UNUSABLE_SCHEMA]


AVRO_TEXT = json.dumps(
    record(*BASE, field("pay", ["null", "double"]), field("more", {"type": "array", "items": "int"}))
)
whole = st.integers(-(2**63), 2**63 - 1)
any_json = st.recursive(
    st.none()
    | st.booleans()
    | whole
    | st.text(max_size=5)
    | st.sampled_from(["record", "array", "int", "null", "map"]),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "name", "fields", "items", "size", "symbols", "values"]), below, max_size=4
        )
    ),
    max_leaves=12,
)


@given(st.lists(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(lambda b: frame(0) + b)), max_size=12))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_accounted_for(payloads: list[bytes]) -> None:
    found = read(Shelf(Schema("AVRO", AVRO_TEXT)), payloads)
    assert sorted([*found.kept.tolist(), *found.refused]) == list(range(len(payloads)))
    assert {len(values) for values in found.values.values()} == {len(found.kept)}


@given(any_json, st.binary(max_size=40))
@settings(max_examples=400, deadline=None)
def test_any_schema_is_used_or_refused(schema: Any, body: bytes) -> None:
    found = read(Shelf(Schema("AVRO", json.dumps(schema))), [frame(0) + body])
    assert len(found.kept) + len(found.refused) == 1


FLAT = record(
    field("who", "string"),
    field("age", ["null", "int"]),
    field("home", HOME),
    field("pay", ["double", "null"]),
    field("small", "float"),
    field("ill", {"type": "enum", "name": "I", "symbols": ["flu", "ulcer"]}),
    field("sure", "boolean"),
    field("more", "long"),
)
FLAT_TYPES = TYPES | {"small": "number", "sure": "any", "more": "integer"}
BY_COLUMN = avro_messages(Schema("AVRO", json.dumps(FLAT)), FLAT_TYPES)
BY_MESSAGE = AvroMessages(Schema("AVRO", json.dumps(FLAT)), FLAT_TYPES)
flat_rows = st.fixed_dictionaries(
    {
        "who": st.text(max_size=8),
        "age": st.none() | st.integers(-(2**31), 2**31 - 1),
        "home": st.fixed_dictionaries({"zip": st.text(max_size=4)}),
        "pay": st.none() | st.floats(),
        "small": st.floats(width=32),
        "ill": st.sampled_from(["flu", "ulcer"]),
        "sure": st.booleans(),
        "more": whole,
    }
)


@given(st.lists(flat_rows.map(lambda row: avro(FLAT, row)[5:]) | st.binary(max_size=40), max_size=10), st.randoms())
@settings(max_examples=300, deadline=None)
def test_by_column_and_by_message_are_the_same(bodies: list[bytes], chance: Any) -> None:
    if bodies and bodies[0] and chance.random() < 0.5:
        place = chance.randrange(len(bodies[0]))
        bodies[0] = bodies[0][:place] + bytes([chance.randrange(256)]) + bodies[0][place + 1 :]
    one, other = BY_COLUMN.read(bodies), BY_MESSAGE.read(bodies)
    assert type(BY_COLUMN) is not type(BY_MESSAGE)
    lenient = {i for i in other.kept.tolist() if i in one.refused}  # numbers of more bits than their type has
    assert all(one.refused[i].code is Reject.NOT_BY_SCHEMA for i in lenient)
    assert sorted([*one.kept.tolist(), *lenient]) == other.kept.tolist()
    if not lenient:
        assert one.values == other.values


@given(whole, st.text(max_size=20), st.none() | st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=200, deadline=None)
def test_what_avro_holds_is_what_is_read(age: int, ill: str, pay: float | None) -> None:
    schema = record(field("age", "long"), field("ill", "string"), field("pay", ["null", "double"]))
    found = read(Shelf(Schema("AVRO", json.dumps(schema))), [avro(schema, {"age": age, "ill": ill, "pay": pay})])
    assert first(found) | {"who": None, "home.zip": None, "at": None} == first(found)
    assert (first(found)["age"], first(found)["ill"], first(found)["pay"]) == (age, ill, pay)
