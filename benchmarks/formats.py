"""What reading and writing a record costs in each format, beside the libraries alone: microseconds of processor time.

Made-up visits of ten fields, of which a policy declares six. Reading is from bytes to columns, writing from groups that
passed the gate to bytes. `fastavro` and `msgspec` read the same bytes into all their fields and do nothing else.
"""

from __future__ import annotations

import argparse
import io
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import fastavro
import msgspec
import numpy as np

from stream_anon.core.decode import Decoder
from stream_anon.core.encode import Encoder
from stream_anon.core.gate import Reason, release_all
from stream_anon.core.schema import Schema
from stream_anon.formats.messages.avro.reading import AvroMessages, avro_messages
from stream_anon.formats.messages.avro.writing import AvroWriter
from stream_anon.formats.messages.framing import frame, path_bytes
from stream_anon.formats.messages.json_schema import JsonSchemaWriter
from stream_anon.formats.messages.messages import JsonWriter
from stream_anon.formats.messages.protobuf.reading import ProtoMessages
from stream_anon.formats.messages.protobuf.schemas import ProtoSchema
from stream_anon.formats.messages.protobuf.writing import ProtoWriter
from stream_anon.formats.messages.reader import JsonMessages
from stream_anon.formats.messages.registry import Schema as RegistrySchema
from stream_anon.policy import Policy

FIELDS = {
    "patient": "string",
    "name": "string",
    "phone": "string",
    "age": "int",
    "zip": "string",
    "sex": "string",
    "diagnosis": "string",
    "ward": "string",
    "cost": "double",
    "visits": "int",
}
AVRO = {"type": "record", "name": "Visit", "fields": [{"name": n, "type": t} for n, t in FIELDS.items()]}
PROTO_TYPES = {"string": "string", "int": "int32", "double": "double"}
PROTO = (
    'syntax = "proto3";\nmessage Visit {\n'
    + "\n".join(f"  {PROTO_TYPES[t]} {n} = {i};" for i, (n, t) in enumerate(FIELDS.items(), 1))
    + "\n}\n"
)
POLICY: dict[str, Any] = {
    "version": 1,
    "name": "visits",
    "subject": "patient",
    "secret": "a secret only for benchmarks, of no value",
    "attributes": {
        "patient": {"role": "identifier"},
        "age": {
            "role": "quasi_identifier",
            "type": "integer",
            "hierarchy": {"kind": "interval", "range": [0, 120], "snap": [5, 10]},
        },
        "zip": {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "prefix", "length": 5}},
        "sex": {
            "role": "quasi_identifier",
            "type": "category",
            "hierarchy": {"kind": "flat", "values": ["female", "male", "other"]},
        },
        "diagnosis": {"role": "sensitive"},
        "ward": {"role": "insensitive"},
    },
    "privacy": [{"model": "k_anonymity", "k": 10}],
}


def visits(count: int) -> list[dict[str, Any]]:
    """Return so many made-up visits."""
    rng = np.random.default_rng(7)
    ills, sexes = ["flu", "ulcer", "asthma", "gastritis"], ["female", "male", "other"]
    return [
        {
            "patient": f"P{n}",
            "name": f"Somebody {n}",
            "phone": f"555-{n:07}",
            "age": int(rng.integers(0, 100)),
            "zip": f"{int(rng.integers(0, 90000)):05}",
            "sex": sexes[n % 3],
            "diagnosis": ills[n % 4],
            "ward": "ABC"[n % 3],
            "cost": float(rng.integers(0, 9999)) / 8,
            "visits": int(rng.integers(0, 9)),
        }
        for n in range(count)
    ]


def cost(work: Callable[[], object], count: int, seconds: float) -> float:
    """Return the microseconds of processor time for each record, the least of several rounds."""
    best, spent = float("inf"), 0.0
    while spent < seconds:
        began = time.process_time()
        work()
        took = time.process_time() - began
        best, spent = min(best, took), spent + max(took, 1e-6)
    return round(1e6 * best / count, 2)


def measure(count: int, seconds: float) -> dict[str, Any]:
    """Measure all formats on the same records."""
    records = visits(count)
    schema = Schema.of(Policy.model_validate(POLICY))
    types: dict[str, str] = {}
    Encoder(schema, reader=lambda found: _note(types, found))
    parsed = fastavro.parse_schema(AVRO)
    proto = RegistrySchema("PROTOBUF", PROTO)
    message = ProtoSchema(proto).message((0,))
    as_json = [json.dumps(record).encode() for record in records]
    as_avro = [_avro(parsed, record) for record in records]
    as_proto = [path_bytes((0,)) + message(**record).SerializeToString() for record in records]
    plain, avro = Decoder(types), avro_messages(RegistrySchema("AVRO", json.dumps(AVRO)), types)
    nested = AvroMessages(RegistrySchema("AVRO", json.dumps(AVRO)), types)
    protobuf, by_schema = ProtoMessages(proto, types), JsonMessages(types)
    reading = {
        "json": cost(lambda: plain.columns(as_json), count, seconds),
        "json_schema": cost(lambda: by_schema.read(as_json), count, seconds),
        "avro": cost(lambda: avro.read(as_avro), count, seconds),
        "avro, not flat": cost(lambda: nested.read(as_avro), count, seconds),
        "protobuf": cost(lambda: protobuf.read(as_proto), count, seconds),
        "msgspec alone": cost(lambda: [msgspec.json.decode(each) for each in as_json], count, seconds),
        "fastavro alone": cost(
            lambda: [fastavro.schemaless_reader(io.BytesIO(each), parsed, None) for each in as_avro], count, seconds
        ),
    }
    ref = np.stack([np.zeros(count, dtype=np.int64), np.arange(count)], axis=1)
    rows = Encoder(schema).encode(as_json, ref, np.zeros(count)).batch
    order = np.lexsort(rows.qi.T)[: len(rows) // 10 * 10]
    groups = release_all(rows, order, [10] * (len(order) // 10), schema, [Reason.BATCH] * (len(order) // 10))
    writers = {
        "json": JsonWriter(),
        "json_schema": JsonSchemaWriter(schema, 1),
        "avro": AvroWriter(schema, 1),
        "protobuf": ProtoWriter(schema, 1),
    }
    writing = {
        name: cost(lambda writer=writer: [len(part) for part in writer.write(groups)], len(order), seconds)
        for name, writer in writers.items()
    }
    bare = [
        {"age": {"low": 30, "high": 39}, **{name: record[name] for name in ("zip", "diagnosis")}} for record in records
    ]
    writing["msgspec alone"] = cost(lambda: [msgspec.json.encode(each) for each in bare], count, seconds)
    return {
        "records": count,
        "microseconds_reading": reading,
        "microseconds_writing": writing,
        "framing": len(frame(1)),
    }


def _note(types: dict[str, str], found: Any) -> Decoder:
    types.update(found)
    return Decoder(found)


def _avro(parsed: Any, record: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, record)
    return out.getvalue()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=1.0, help="of processor time for each measurement")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    chosen = parser.parse_args(arguments)
    found = measure(chosen.records, chosen.seconds)
    if chosen.json:
        print(json.dumps(found))
        return
    for way in ("reading", "writing"):
        print(f"{way}, microseconds of processor time a record:")
        for name, spent in found[f"microseconds_{way}"].items():
            print(f"  {name:15} {spent:6.2f}")


if __name__ == "__main__":
    main()
