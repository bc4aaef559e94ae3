"""Producers that are not ours, a worker, consumers that are not ours: on a real broker with a real schema registry."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as ClientSchema
from confluent_kafka.serialization import MessageField, SerializationContext
from registry_scene import AVRO, K, Scene, for_avro, until, visits

import stream_anon
from stream_anon.core.schema import Schema
from stream_anon.errors import StreamAnonError
from stream_anon.formats.messages.messages import Messages
from stream_anon.kafka.local_broker.broker import LocalBroker
from stream_anon.kafka.local_broker.registry import LocalRegistry
from stream_anon.worker.checkup import schema_findings
from stream_anon.worker.factory import core_of, settings_of, transport_of
from stream_anon.worker.loop import Worker


def group_sizes(records: list[dict[str, Any]]) -> Counter[str]:
    return Counter(record["_anon"]["group"] for record in records)


@pytest.mark.parametrize("format_", ["avro", "protobuf", "json_schema"])
def test_others_produce_and_others_consume(scenes: Callable[[str], Scene], format_: str, tmp_path: Path) -> None:
    scene = scenes(format_)
    scene.send(visits(300))
    scene.send_raw(b"\x00\x00\x01\x02\x03 no such schema")
    scene.send_raw(b'{"plain": "JSON"}')
    scene.start()
    until(lambda: len(scene.read(scene.kafka.output)) >= 300, "300 records are published")
    scene.stop()
    published = scene.published()
    assert len(published) == 300
    sizes = group_sizes(published)
    assert min(sizes.values()) >= K
    assert "SECRET" not in str(published)
    assert "00000000-0000" not in str(published)
    record = published[0]
    assert set(record) <= {"born", "age", "home", "diagnosis", "ward", "_anon"}
    assert sizes[record["_anon"]["group"]] == int(record["_anon"]["size"])
    assert Counter(record["diagnosis"] for record in published) == {"flu": 100, "ulcer": 100, "asthma": 100}
    if format_ != "json_schema":
        ends = [record["age"] for record in published]
        assert all(int(each["low"]) <= int(each["high"]) for each in ends)
    assert scene.letters() == {"unknown_schema": 1, "not_framed": 1}
    file = tmp_path / "policy.yaml"
    file.write_text(json.dumps(scene.words))
    command = [sys.executable, "-m", "stream_anon", "audit", "kafka:", "-p", str(file), "--raw", "kafka:", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert (found["records"], found["groups"]) == (300, len(sizes))
    assert found["raw"]["matched"] == 300


AWAY = float(os.environ.get("STREAM_ANON_REGISTRY_AWAY", "8"))
"""Seconds for which the registry does not answer."""


@pytest.fixture(scope="module")
def own_registry() -> Iterator[LocalRegistry]:
    """A registry that may be stopped and started again."""
    with LocalRegistry() as registry:
        yield registry


@pytest.mark.parametrize(("client", "restarted"), [("kafka-python", True), ("confluent-kafka", False)])
def test_schemas_change_in_the_middle_and_the_registry_goes_away(
    own_registry: LocalRegistry, local_broker: LocalBroker, name: str, client: str, restarted: bool
) -> None:
    """Messages of a schema that cannot be fetched wait; nothing is rejected, and all leave when it answers again."""
    scene = Scene(local_broker, own_registry, name, "avro")
    scene.words["kafka"]["client"] = client
    scene.policy = stream_anon.Policy.model_validate(scene.words)
    scene.send(visits(100))
    scene.start()
    until(lambda: len(scene.read(scene.kafka.output)) >= 90, "the first records are published")
    more = {"fields": [*AVRO["fields"], {"name": "height", "type": ["null", "double"], "default": None}]}  # type: ignore[misc]
    serialize, context = scene.serializer(more), SerializationContext(scene.kafka.input, MessageField.VALUE)
    later = [serialize(for_avro(record) | {"height": 1.8}, context) for record in visits(100, 100)]
    pid = own_registry.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL if restarted else signal.SIGSTOP)
    try:
        before = len(scene.read(scene.kafka.output))
        for value in later:
            scene.send_raw(value)
        scene._producer.flush(30)
        time.sleep(AWAY)
        assert len(scene.read(scene.kafka.output)) <= 100
        assert not scene.letters()
        assert scene.failure is None
    finally:
        if restarted:
            own_registry.stop()
            own_registry.start()
        else:
            os.kill(pid, signal.SIGCONT)
    until(lambda: len(scene.read(scene.kafka.output)) >= 195, "the others are published, too")
    scene.stop()
    assert before <= 100
    sizes = group_sizes(scene.published())
    assert min(sizes.values()) >= K
    assert not scene.letters()


def announce_and_die(words: dict[str, Any], told: Path) -> None:
    """Work until groups are announced, tell their records, and be gone by kill -9 before any is published."""
    worker = worker_of(stream_anon.Policy.model_validate(words))
    announced: list[Any] = []
    while not announced:
        worker.step()
        announced = [group for p in worker.state.partitions.values() for group in p.announced]
    told.write_bytes(pickle.dumps([record for group in announced for record in group.records]))
    os.kill(os.getpid(), signal.SIGKILL)


def worker_of(policy: stream_anon.Policy) -> Worker:
    schema, kafka = Schema.of(policy), policy.kafka
    assert kafka is not None
    return Worker(transport_of(kafka), core_of(schema), settings_of(policy))


@pytest.mark.parametrize("format_", ["avro", "protobuf", "json_schema"])
def test_an_announced_group_is_published_again_byte_by_byte(
    scenes: Callable[[str], Scene], format_: str, tmp_path: Path
) -> None:
    scene, told = scenes(format_), tmp_path / "told"
    scene.send(visits(60))
    first = get_context("spawn").Process(target=announce_and_die, args=(scene.words, told))
    first.start()
    first.join(120)
    assert first.exitcode == -signal.SIGKILL
    expected = set(pickle.loads(told.read_bytes()))
    assert len(expected) >= K
    assert not scene.read(scene.kafka.output)
    second, end = worker_of(scene.policy), time.monotonic() + 90
    while len(scene.read(scene.kafka.output)) < len(expected) and time.monotonic() < end:
        for _ in range(10):
            second.step()
    second._transport.close()
    assert expected <= set(scene.read(scene.kafka.output))


def test_an_output_that_would_break_its_subject_is_refused(scenes: Callable[[str], Scene]) -> None:
    scene = scenes("avro")
    subject = f"{scene.kafka.output}-value"
    other = '{"type": "record", "name": "Other", "fields": [{"name": "must", "type": "string"}]}'
    scene.client.register_schema(subject, ClientSchema(other, "AVRO"))
    scene.client.set_compatibility(subject, level="FULL")
    with pytest.raises(StreamAnonError, match="may not follow the newest one") as refused:
        Messages(Schema.of(scene.policy)).writer()
    assert "name another output topic" in str(refused.value)
    [finding] = schema_findings(scene.kafka, Schema.of(scene.policy))
    assert not finding.good
    assert "another output" in finding.remedy


def test_the_past_of_a_topic_is_replayed_by_its_schemas(scenes: Callable[[str], Scene], tmp_path: Path) -> None:
    scene = scenes("avro")
    scene.send(visits(120))
    file, out = tmp_path / "policy.yaml", tmp_path / "out.jsonl"
    file.write_text(json.dumps(scene.words))
    command = [
        sys.executable,
        "-m",
        "stream_anon",
        "replay",
        f"kafka:{scene.kafka.input}",
        "-p",
        str(file),
        "-o",
        str(out),
    ]
    done = subprocess.run([*command, "--algorithm", "mondrian"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    published = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(published) == 120
    assert min(group_sizes(published).values()) >= K
