"""What becomes of messages in Protobuf, column by column and one by one, and of bytes that nobody meant well."""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from message_shelf import TYPES, Shelf, read

from stream_anon.core.decode import Reject
from stream_anon.formats.messages.framing import frame, path_bytes
from stream_anon.formats.messages.protobuf.reading import ProtoMessages
from stream_anon.formats.messages.protobuf.schemas import ProtoSchema
from stream_anon.formats.messages.registry import Schema

PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum Ill { none = 0; flu = 1; }
message Other { string name = 1; }
message Visit {
  message Home { optional string zip = 1; }
  string who = 1;
  optional int32 age = 2;
  Home home = 3;
  google.protobuf.DoubleValue pay = 4;
  Ill ill = 5;
  google.protobuf.Timestamp at = 6;
  string ssn = 7;
}
"""


def test_messages_of_protobuf() -> None:
    schema = Schema("PROTOBUF", PROTO)
    visit = ProtoSchema(schema).message((1,))
    message = visit(who="p1", age=41, ill=1, ssn="SECRET")
    message.home.zip, message.pay.value = "021", 2.5
    message.at.FromDatetime(datetime(2024, 2, 29))
    empty = visit(who="p2")
    head = frame(0) + path_bytes((1,))
    payloads = [head + message.SerializeToString(), head + empty.SerializeToString()]
    payloads += [frame(0) + path_bytes((7,)) + b"", frame(0), head + b"\xff\xff\xff"]
    found = read(Shelf(schema), payloads)
    assert found.values == {
        "who": ["p1", "p2"],
        "age": [41, None],
        "home.zip": ["021", None],
        "pay": [2.5, None],
        "ill": ["flu", "none"],
        "at": ["2024-02-29T00:00:00Z", None],
    }
    assert "SECRET" not in str(found)
    assert {i: r.code for i, r in found.refused.items()} == {
        2: Reject.UNKNOWN_SCHEMA,
        3: Reject.NOT_BY_SCHEMA,
        4: Reject.NOT_BY_SCHEMA,
    }


@pytest.mark.parametrize(
    "text",
    ["", "message {", 'import "/etc/passwd";', 'import "missing.proto"; message A {}', "syntax = 'proto9';", "\0"],
)
def test_schemas_that_protobuf_cannot_compile(text: str) -> None:
    found = read(Shelf(Schema("PROTOBUF", text)), [frame(0) + b"\0abc"])
    assert next(r.code for r in found.refused.values()) in (Reject.UNUSABLE_SCHEMA, Reject.UNKNOWN_SCHEMA)


PROTO_SCHEMA = Schema("PROTOBUF", PROTO)
_COMPILED = ProtoMessages(PROTO_SCHEMA, TYPES)


@given(st.lists(st.binary(max_size=60).map(lambda b: path_bytes((1,)) + b) | st.binary(max_size=30), max_size=8))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_accounted_for_in_protobuf(bodies: list[bytes]) -> None:
    found = _COMPILED.read(bodies)
    assert sorted([*found.kept.tolist(), *found.refused]) == list(range(len(bodies)))
    assert {len(values) for values in found.values.values()} == {len(found.kept)}


KINDS = "int32 int64 uint32 uint64 sint32 sint64 bool fixed32 sfixed32 float fixed64 sfixed64 double string bytes Sort"
PLAIN = "\n".join(
    f"  {'optional ' * (n % 3 == 0)}{kind} {kind.lower()}_{n} = {n + 1};"
    for n, kind in enumerate(kind for kind in KINDS.split() for _ in range(2))
)
PLAIN_SCHEMA = Schema(
    "PROTOBUF", f'syntax = "proto3";\nenum Sort {{ NONE = 0; ONE = 1; }}\nmessage Row {{\n{PLAIN}\n}}\n'
)
PLAIN_NAMES = [line.split()[-3] for line in PLAIN.splitlines()]
PLAIN_TYPES = dict.fromkeys(PLAIN_NAMES[::2], "any") | {"string_26": "category", "int32_0": "integer", "gone": "any"}
AT_ONCE = ProtoMessages(PLAIN_SCHEMA, PLAIN_TYPES)
ONE_BY_ONE = ProtoMessages(PLAIN_SCHEMA, PLAIN_TYPES)
ONE_BY_ONE._flat[(0,)] = None
ROW_CLASS = ProtoSchema(PLAIN_SCHEMA).message((0,))


def plain_message(chance: Any) -> bytes:
    """A message with some of its fields, some of them twice, and perhaps with bytes that were changed."""
    parts = []
    for _ in range(chance.choice((1, 1, 2))):
        row = ROW_CLASS()
        for name in PLAIN_NAMES:
            if chance.random() < 0.4:
                kind = name.split("_")[0]
                whole = chance.choice((0, 1, 127, 128, 2**31 - 1, chance.randrange(2**31)))
                value: Any = whole if kind.startswith(("u", "fixed")) else chance.choice((whole, -whole))
                if kind in ("float", "double"):
                    value = chance.choice((0.0, -0.0, 1.5, -1e30))
                elif kind == "string":
                    value = chance.choice(("", "a", "é", "x" * 200))
                elif kind == "bytes":
                    value = b"\xff"
                elif kind in ("bool", "sort"):
                    value = chance.choice((0, 1))
                setattr(row, name, value)
        parts.append(row.SerializeToString())
    data = bytearray(b"".join(parts))
    for _ in range(chance.choice((0, 0, 0, 1, 3))):
        if data:
            data[chance.randrange(len(data))] = chance.randrange(256)
    return b"\0" + bytes(data[: chance.choice((len(data), len(data), chance.randrange(len(data) + 1)))])


def test_protobuf_by_column_and_by_message_are_the_same() -> None:
    chance = Random(7)
    flat = 0
    for _ in range(400):
        bodies = [plain_message(chance) for _ in range(3)]
        flat += AT_ONCE._read_flat(bodies) is not None
        left, right = AT_ONCE.read(bodies), ONE_BY_ONE.read(bodies)
        assert left.kept.tolist() == right.kept.tolist()
        assert left.refused == right.refused
        assert repr(left.values) == repr(right.values)
    assert flat > 100
