"""Changed fields in the formats with schemas: each is declared as what it holds."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import numpy as np

from stream_anon.core.encode import Encoder
from stream_anon.core.gate import Reason, release
from stream_anon.core.schema import Schema
from stream_anon.formats.messages.avro.writing import AvroWriter, output_schema
from stream_anon.formats.messages.shape import shape_of
from stream_anon.policy import Policy

SECRET = "kX2-hj41_qPz9wLtVb7nRc3mYd8sFg5a"
PUBLISH: dict[str, Any] = {
    "token": {"kind": "pseudonym", "scope": {"rotate": "1d", "by": "at"}},
    "prefix": {"kind": "hash_prefix", "length": 1, "people": 500},
    "card": {"kind": "mask", "last": 2},
    "note": "redact",
    "born": {"kind": "shift", "days": 20},
    "tens": {"kind": "round", "step": 10, "top": 90},
    "halves": {"kind": "round", "step": 0.5},
    "top": {"kind": "round", "top": 90},
    "gone": "drop",
}
HOLDS = {
    "pay": "real", "token": "text", "prefix": "text", "card": "text", "note": "text", "born": "scalar", "tens": "whole",
    "halves": "real", "top": "real",
}  # fmt: skip


def schema() -> Schema:
    sex = {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "flat", "values": ["f", "m"]}}
    attributes: dict[str, Any] = {"who": {"role": "identifier"}, "sex": sex}
    attributes["pay"] = {"role": "sensitive", "type": "number", "publish": {"kind": "round", "step": 10}}
    attributes |= {name: {"role": "identifier", "publish": publish} for name, publish in PUBLISH.items()}
    data = {"version": 1, "name": "t", "subject": "who", "secret": SECRET, "attributes": attributes}
    return Schema.of(Policy.model_validate(data | {"privacy": [{"model": "k_anonymity", "k": 2}]}))


def test_the_shape_of_a_record_has_changed_fields_by_their_types() -> None:
    assert {leaf.name: leaf.holds for leaf in shape_of(schema()).leaves()} == {"sex": "text"} | HOLDS


def test_an_avro_reader_reads_changed_fields() -> None:
    made = schema()
    records = [
        {"who": f"P{i}", "sex": "f", "pay": 12.5, "at": "2026-03-08", **dict.fromkeys(PUBLISH, 12 + i)}
        | {"note": "a@b.c"}
        for i in range(2)
    ]
    ref = np.stack([np.zeros(2, np.int64), np.arange(2)], axis=1)
    found = Encoder(made).encode(records, ref, np.zeros(2))
    assert found.rejections == []
    group = release(found.batch, made, Reason.READY)
    [messages] = AvroWriter(made, 7).write([group])
    written = fastavro.parse_schema(json.loads(output_schema(made).text))
    read = [fastavro.schemaless_reader(io.BytesIO(message[5:]), written) for message in messages]
    for record in read:
        assert (record["pay"], record["tens"], record["note"], record["card"]) == (10.0, 10, "[email]", "***")
        assert len(record["token"]) == 32
        assert "gone" not in record
