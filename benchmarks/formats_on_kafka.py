"""The worker on the same records in each format, on a real broker with a real schema registry, in turns.

Prints what each format reaches, and its share of what plain JSON does in the same run.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import random
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

# Another benchmark is called like the client's package, which has to be found first.
HERE = Path(__file__).parent.resolve()
sys.path = [p for p in sys.path if Path(p or ".").resolve() != HERE]

import fastavro  # noqa: E402
from confluent_kafka import Producer  # noqa: E402

from stream_anon.formats.messages.framing import frame, path_bytes  # noqa: E402
from stream_anon.formats.messages.protobuf.schemas import ProtoSchema  # noqa: E402
from stream_anon.formats.messages.registry import Access, Registry, Schema  # noqa: E402
from stream_anon.kafka.clients.kafka_python.topics import create_topics  # noqa: E402
from stream_anon.kafka.local_broker.broker import LocalBroker  # noqa: E402
from stream_anon.kafka.local_broker.registry import LocalRegistry  # noqa: E402


def _load(name: str) -> Any:
    """Load the other benchmark under a name that processes started from here find again."""
    spec = importlib.util.spec_from_file_location(name, HERE / "kafka.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


bench = _load("worker_benchmark")

FIELDS = {"person": "string", "age": "int", "zip": "string", "gender": "string", "illness": "string", "note": "string"}
AVRO = {"type": "record", "name": "Visit", "fields": [{"name": n, "type": t} for n, t in FIELDS.items()]}
JSON = '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {}}'
KINDS = {"string": "string", "int": "int32"}
LINES = "".join(f"  {KINDS[t]} {n} = {i};\n" for i, (n, t) in enumerate(FIELDS.items(), 1))
PROTO = f'syntax = "proto3";\nmessage Visit {{\n{LINES}}}\n'


def encoders(registry: Registry) -> dict[str, Callable[[bytes], bytes]]:
    """Return for each format what makes its message of a record in JSON."""
    parsed = fastavro.parse_schema(AVRO)
    avro = frame(registry.register("visits-avro", Schema("AVRO", json.dumps(AVRO))))
    proto = frame(registry.register("visits-proto", Schema("PROTOBUF", PROTO))) + path_bytes((0,))
    by_schema = frame(registry.register("visits-json", Schema("JSON", JSON)))
    message = ProtoSchema(Schema("PROTOBUF", PROTO)).message((0,))

    def as_avro(record: bytes) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, json.loads(record))
        return avro + out.getvalue()

    return {
        "json": lambda record: record,
        "json_schema": lambda record: by_schema + record,
        "avro": as_avro,
        "protobuf": lambda record: proto + message(**json.loads(record)).SerializeToString(),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--records", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--client", default="confluent-kafka", choices=["kafka-python", "confluent-kafka"])
    chosen = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {}
    with LocalBroker() as broker, LocalRegistry() as local:
        rng = random.Random(1)
        some = [bench.record(rng, number) for number in range(min(chosen.records, 30_000))]
        topics = {}
        for name, encode in encoders(Registry(Access([local.url]))).items():
            topics[name] = f"formats-{name}-{uuid4().hex[:6]}"
            create_topics(broker.bootstrap, {topics[name]: chosen.partitions})
            producer = Producer({"bootstrap.servers": broker.bootstrap, "queue.buffering.max.messages": 2_000_000})
            values = [encode(record) for record in some]
            for number in range(chosen.records):
                producer.produce(topics[name], values[number % len(values)], partition=number % chosen.partitions)
                if number % 5_000 == 0:
                    producer.poll(0)
            producer.flush()
        for _ in range(chosen.rounds):
            for name, topic in topics.items():
                group = f"formats-{uuid4().hex[:8]}"
                create_topics(broker.bootstrap, {f"{group}-out": 1})
                more = "" if name == "json" else f', format: {name}, registry: {{url: "{local.url}"}}'
                options = {"bootstrap": broker.bootstrap, "client": chosen.client, "group": group, "input": topic}
                options |= {
                    "output": f"{group}-out",
                    "delay": "2s",
                    "records": 1_000,
                    "algorithm": "cail",
                    "ledger": False,
                }
                done = bench.in_process(bench.work, options | {"count": chosen.records, "more": more})
                found.setdefault(name, []).append(done)
    result = {
        name: {
            "records_per_second": round(statistics.median(r["records"] / r["seconds"] for r in rounds)),
            "records_per_cpu_second": round(statistics.median(r["records"] / r["cpu"] for r in rounds)),
        }
        for name, rounds in found.items()
    }
    for name in result:
        for unit in ("records_per_second", "records_per_cpu_second"):
            result[name][f"share_of_json_{unit}"] = round(result[name][unit] / result["json"][unit], 3)
    if chosen.json:
        print(json.dumps(result))
    else:
        for name, figures in result.items():
            print(name, *(f"{key} {value}" for key, value in figures.items()), sep="  ")


if __name__ == "__main__":
    main()
