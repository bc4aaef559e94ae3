"""A policy, its topics, and the clients of others around a worker of ours, on a real broker with a real registry."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import date
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.json_format import MessageToDict, ParseDict

import stream_anon
from stream_anon.core.schema import Schema
from stream_anon.formats.messages.protobuf.schemas import ProtoSchema
from stream_anon.formats.messages.protobuf.writing import output_schema
from stream_anon.formats.messages.registry import Schema as RegistrySchema
from stream_anon.kafka.clients.kafka_python.topics import create_topics
from stream_anon.kafka.local_broker.broker import LocalBroker
from stream_anon.kafka.local_broker.registry import LocalRegistry

AVRO = {
    "type": "record",
    "name": "Visit",
    "fields": [
        {"name": "patient", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "name", "type": "string"},
        {"name": "born", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "age", "type": "int"},
        {
            "name": "home",
            "type": {"type": "record", "name": "Home", "fields": [{"name": "zip", "type": ["null", "string"]}]},
        },
        {"name": "diagnosis", "type": {"type": "enum", "name": "Diagnosis", "symbols": ["flu", "ulcer", "asthma"]}},
        {"name": "ward", "type": ["null", "int", "string"]},
    ],
}
PROTO = """
syntax = "proto3";
package clinic;
message Home { optional string zip = 1; }
enum Diagnosis { none = 0; flu = 1; ulcer = 2; asthma = 3; }
message Visit {
  string patient = 1;
  string name = 2;
  optional string born = 3;
  int32 age = 4;
  Home home = 5;
  Diagnosis diagnosis = 6;
  optional int64 ward = 7;
}
"""
JSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Visit",
    "type": "object",
    "properties": {"patient": {"type": "string"}, "age": {"type": "integer"}},
}
K = 5
BY_TOPIC = {"subject.name.strategy": topic_subject_name_strategy}  # else every message asks the registry once more


def policy(bootstrap: str, registry: str, name: str, format_: str) -> dict[str, Any]:
    return {
        "version": 1,
        "name": "visits",
        "subject": "patient",
        "secret": "a secret only for the tests, of no value",
        "attributes": {
            "patient": {"role": "identifier"},
            "born": {
                "role": "quasi_identifier",
                "type": "timestamp",
                "missing": "leaf",
                "hierarchy": {"kind": "calendar", "levels": ["month", "year"]},
            },
            "age": {
                "role": "quasi_identifier",
                "type": "integer",
                "hierarchy": {"kind": "interval", "range": [0, 120], "snap": [5, 10]},
            },
            "home.zip": {
                "role": "quasi_identifier",
                "type": "category",
                "missing": "leaf",
                "hierarchy": {"kind": "prefix", "length": 3},
            },
            "diagnosis": {"role": "sensitive"},
            "ward": {"role": "insensitive"},
        },
        "privacy": [{"model": "k_anonymity", "k": K}],
        "stream": {"max_delay": {"time": 2.0}},
        "kafka": {
            "bootstrap": bootstrap,
            "group": f"{name}-group",
            "input": f"{name}-in",
            "output": f"{name}-out",
            "dead_letter": f"{name}-dead",
            "format": format_,
            "registry": {"url": registry},
        },
    }


def visits(count: int, first: int = 0) -> list[dict[str, Any]]:
    ills = ["flu", "ulcer", "asthma"]
    return [
        {
            "patient": f"00000000-0000-0000-0000-{n:012}",
            "name": f"SECRET{n}",
            "born": None if n % 7 == 0 else f"19{40 + n % 50}-0{1 + n % 9}-11",
            "age": 20 + n % 60,
            "home": {"zip": None if n % 11 == 0 else f"{n % 9}{n % 5}1"},
            "diagnosis": ills[n % 3],
            "ward": None if n % 2 else n % 4,
        }
        for n in range(first, first + count)
    ]


def until(condition: Callable[[], bool], what: str, seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.1)


class Scene:
    """One policy, its topics, and the clients of others around a worker of ours."""

    def __init__(self, broker: LocalBroker, registry: LocalRegistry, name: str, format_: str) -> None:
        self.words = policy(broker.bootstrap, registry.url, name, format_)
        self.policy = stream_anon.Policy.model_validate(self.words)
        self.format, self.name, self.bootstrap = format_, name, broker.bootstrap
        self.client = SchemaRegistryClient({"url": registry.url, "timeout": 20})
        kafka = self.policy.kafka
        assert kafka is not None
        self.kafka = kafka
        create_topics(broker.bootstrap, {kafka.input: 2, kafka.output: 1, str(kafka.dead_letter): 1})
        self._producer = Producer({"bootstrap.servers": broker.bootstrap})
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.failure: BaseException | None = None

    def serializer(self, changes: dict[str, Any] | None = None) -> Any:
        if self.format == "protobuf":
            message = ProtoSchema(RegistrySchema("PROTOBUF", PROTO)).message((1,))
            made = ProtobufSerializer(message, self.client, {"use.deprecated.format": False, **BY_TOPIC})
            return lambda value, context: made(ParseDict(value, message(), ignore_unknown_fields=True), context)
        if self.format == "json_schema":
            return JSONSerializer(json.dumps(JSON | (changes or {})), self.client, conf=BY_TOPIC)
        return AvroSerializer(self.client, json.dumps(AVRO | (changes or {})), conf=BY_TOPIC)

    def send(self, records: list[dict[str, Any]], changes: dict[str, Any] | None = None) -> None:
        serialize, context = self.serializer(changes), SerializationContext(self.kafka.input, MessageField.VALUE)
        for record in records:
            self.send_raw(serialize(for_avro(record) if self.format in ("avro", "auto") else record, context))
        self._producer.flush(30)

    def send_raw(self, value: bytes) -> None:
        self._producer.produce(self.kafka.input, value)
        self._producer.poll(0)

    def start(self) -> None:
        def work() -> None:
            try:
                stream_anon.run_worker(self.policy, stop=self._stop)
            except BaseException as error:
                self.failure = error

        self._stop.clear()
        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(60)
            assert not self._thread.is_alive()
        if self.failure is not None:
            raise self.failure

    def read(self, topic: str) -> list[bytes]:
        """Committed records of a topic, all of them."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "reader",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[bytes] = []
        while True:
            message = consumer.poll(10)
            if message is None or message.error():
                break
            found.append(message.value())
        consumer.close()
        return found

    def published(self) -> list[dict[str, Any]]:
        values, context = self.read(self.kafka.output), SerializationContext(self.kafka.output, MessageField.VALUE)
        if self.format == "protobuf":
            message = ProtoSchema(output_schema(Schema.of(self.policy))).message((0,))
            read = ProtobufDeserializer(message, {"use.deprecated.format": False})
            return [MessageToDict(read(value, context), preserving_proto_field_name=True) for value in values]
        if self.format == "json_schema":
            read = JSONDeserializer(None, schema_registry_client=self.client)
        else:
            read = AvroDeserializer(self.client)
        return [read(value, context) for value in values]

    def letters(self) -> Counter[str]:
        return Counter(json.loads(value)["code"] for value in self.read(str(self.kafka.dead_letter)))


def for_avro(record: dict[str, Any]) -> dict[str, Any]:
    return record | {"born": record["born"] and date.fromisoformat(record["born"])}
