"""What is published is the same record in every format, and can be read by the format's own library."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import jsonschema
import numpy as np
import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_anon.core.encode import Encoder
from stream_anon.core.gate import Group, Reason, release
from stream_anon.core.schema import Schema
from stream_anon.formats.messages import json_schema
from stream_anon.formats.messages.avro import writing as avro_writing
from stream_anon.formats.messages.avro.writing import AvroWriter
from stream_anon.formats.messages.json_schema import JsonSchemaWriter
from stream_anon.formats.messages.protobuf import writing as proto_writing
from stream_anon.formats.messages.protobuf.schemas import ProtoSchema
from stream_anon.formats.messages.protobuf.writing import ProtoWriter
from stream_anon.policy import Policy

POLICY: dict[str, Any] = {
    "version": 1,
    "name": "all-kinds",
    "secret": "a secret only for the tests, of no value",
    "attributes": {
        "age": {
            "role": "quasi_identifier",
            "type": "integer",
            "missing": "leaf",
            "hierarchy": {"kind": "interval", "range": [0, 120], "snap": [5]},
        },
        "pay-rate": {
            "role": "quasi_identifier",
            "type": "number",
            "hierarchy": {"kind": "interval", "range": [0, 9], "step": 0.5, "snap": "none"},
        },
        "home.zip": {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "prefix", "length": 2}},
        "ill": {
            "role": "sensitive",
            "hierarchy": {"kind": "flat", "values": ["flu", "ulcer", "7"]},
        },
        "score": {"role": "sensitive", "type": "integer", "missing": "leaf"},
        "home.note": {"role": "insensitive"},
        "tags": {"role": "insensitive", "list": True},
    },
    "privacy": [{"model": "k_anonymity", "k": 2}],
}
SCHEMA = Schema.of(Policy.model_validate(POLICY))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
rows = st.fixed_dictionaries(
    {
        "age": st.none() | st.integers(0, 120),
        "pay-rate": st.floats(0, 9),
        "home": st.fixed_dictionaries({"zip": st.sampled_from(["00", "01", "77"]), "note": scalars}),
        "ill": st.sampled_from(["flu", "ulcer", 7]),
        "score": st.none() | st.integers(-(2**63), 2**63 - 1),
        "tags": scalars | st.lists(scalars, max_size=3),
    }
)


def group_of(records: list[dict[str, Any]]) -> Group | None:
    payloads = [json.dumps(record).encode() for record in records]
    ref = np.stack([np.zeros(len(records), dtype=np.int64), np.arange(len(records))], axis=1)
    batch = Encoder(SCHEMA).encode(payloads, ref, np.zeros(len(records))).batch
    return release(batch, SCHEMA, Reason.BATCH) if len(batch) >= 2 else None


AVRO = fastavro.parse_schema(json.loads(avro_writing.output_schema(SCHEMA).text))
JSON = jsonschema.Draft7Validator(json.loads(json_schema.output_schema(SCHEMA).text))
PROTO = ProtoSchema(proto_writing.output_schema(SCHEMA)).message((0,))
WRITERS = {"avro": AvroWriter(SCHEMA, 7), "protobuf": ProtoWriter(SCHEMA, 7), "json": JsonSchemaWriter(SCHEMA, 7)}


def text_of(value: Any) -> Any:
    return str(value) if isinstance(value, int) else value


@given(st.lists(rows, min_size=2, max_size=5))
@settings(max_examples=150, deadline=None)
def test_every_format_holds_the_same_records(records: list[dict[str, Any]]) -> None:
    group = group_of(records)
    if group is None:
        return
    expected = list(group.records())
    written = {name: next(iter(writer.write([group]))) for name, writer in WRITERS.items()}
    for name, messages in written.items():
        assert messages == next(iter(WRITERS[name].write([group]))), "the same group, the same bytes"
        assert all(message[:5] == b"\0\0\0\0\x07" for message in messages)
        assert len(messages) == len(expected)
    for record, avro, proto, plain in zip(expected, written["avro"], written["protobuf"], written["json"], strict=True):
        assert json.loads(plain[5:]) == json.loads(json.dumps(record))
        JSON.validate(json.loads(plain[5:]))
        file = io.BytesIO(avro[5:])
        found: Any = fastavro.schemaless_reader(file, AVRO, None)
        assert file.tell() == len(avro) - 5
        ends = record["age"]
        assert found["age"] == (None if ends is None else {"low": ends[0], "high": ends[1]})
        assert [found["pay_rate"]["low"], found["pay_rate"]["high"]] == record["pay-rate"]
        assert found["home"]["zip"] == record["home"]["zip"]
        assert (found["ill"], found["score"]) == (text_of(record["ill"]), record["score"])
        for name, value in (("note", record["home"]["note"]), ("tags", record["tags"])):
            got = found["home"]["note"] if name == "note" else found["tags"]
            assert json.dumps(got) == json.dumps(value), name
        assert found["_anon"] == record["_anon"]
        message = PROTO.FromString(proto[6:])
        assert message.SerializeToString(deterministic=True) == proto[6:], "what Protobuf itself would write"
        assert MessageToDict(message.home, preserving_proto_field_name=True).get("zip") == record["home"]["zip"]
        assert message.HasField("age") == (ends is not None)
        assert (message.ill, message._anon.group) == (text_of(record["ill"]), record["_anon"]["group"])
        assert (message.score if message.HasField("score") else None) == record["score"]


@pytest.mark.parametrize("name", WRITERS)
def test_values_that_cannot_be_written_are_told(name: str) -> None:
    good = ("flu", 3, "x", ["a", None])
    assert WRITERS[name].writable(good)
    assert not WRITERS[name].writable(("flu", 3, object(), None))
    assert not WRITERS[name].writable(("flu", 3, "\ud800", None))
