"""No single record ends a worker: ten thousand hostile ones pass by, good ones still leave, and the sum holds."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from broker_world import World, each_client
from hostile import GOOD, TEXTS, hostile
from memory_world import Notes

from stream_anon.cli.prepare import prepare
from stream_anon.kafka.local_broker.broker import free_port
from stream_anon.testing.memory import MemoryTransport
from stream_anon.testing.memory_log import MemoryBroker
from stream_anon.worker.factory import core_of, settings_of
from stream_anon.worker.loop import Worker

POLICY = """
version: 1
name: hostile
secret: not-a-secret-not-a-secret-not-a-secret
subject: person
attributes:
  person: {{role: identifier}}
  age: {{role: quasi_identifier, type: integer, hierarchy: {{kind: interval, range: [0, 120], snap: [5, 10]}}}}
  zip: {{role: quasi_identifier, type: category, hierarchy: {{kind: prefix, length: 5}}}}
  when: {{role: quasi_identifier, type: timestamp, hierarchy: {{kind: calendar, levels: [day, month, year]}}}}
  weight: {{role: quasi_identifier, type: number, missing: leaf, unknown: leaf,
           hierarchy: {{kind: interval, range: [0, 300], step: 0.1, snap: [5, 10]}}}}
  illness: {{role: sensitive}}
  note: {{role: insensitive}}
  deep.inside: {{role: insensitive}}
privacy: [{{model: k_anonymity, k: 3}}]
stream: {{max_delay: {{time: 2s, records: 10000}}}}
kafka: {{bootstrap: "{bootstrap}", group: {name}, input: {name}-in, output: {name}-out, dead_letter: {name}-dead{more}}}
"""


def good(number: int) -> bytes:
    return json.dumps({**GOOD, "person": f"good{number}", "note": f"good{number}"}).encode()


def counted(text: str) -> dict[str, float]:
    """Sums of the counters of records."""
    sums: dict[str, float] = {}
    for line in text.splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        if name.startswith("stream_anon_records_") and name.endswith("_total"):
            sums[name[20:-6]] = sums.get(name[20:-6], 0.0) + float(line.rpartition(" ")[2])
    return sums


@each_client
def test_ten_thousand_hostile_records_do_not_end_a_worker(world: World, tmp_path: Path) -> None:
    world.create(2)
    file, port = tmp_path / "policy.yaml", free_port()
    file.write_text(POLICY.format(bootstrap=world.bootstrap, name=world.name, more=f", client: {world.client}"))
    count, plain = 10_000, 60
    records = hostile(count)
    for i, record in enumerate(records):
        key = b"k" * 50_000 if i % 500 == 0 else b"k"
        world.producer.send(world.input, value=record, key=key, partition=i % 2)
        if i % (count // plain) == 0 and i // (count // plain) < plain:
            world.producer.send(world.input, value=good(i // (count // plain)), partition=i % 2)
    world.producer.flush()
    log = (tmp_path / "log").open("w+")
    command = [sys.executable, "-m", "stream_anon", "run", "-p", str(file), "--status-port", str(port)]
    process = subprocess.Popen(command, stdout=log, stderr=log)

    def sums() -> dict[str, float]:
        assert process.poll() is None, (tmp_path / "log").read_text()[-3000:]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                return counted(answer.read().decode())
        except OSError:
            return {}

    def all_done() -> bool:
        found = sums()
        left = sum(found.get(name, 0.0) for name in ("published", "suppressed", "rejected"))
        return found.get("consumed") == count + plain == left

    try:
        world.until(all_done, timeout=120)
        for number in range(100, 106):
            world.produce(good(number))
        world.until(lambda: sums().get("published", 0) > 0 and {f"good{n}" for n in range(100, 106)} <= notes(world))
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, (tmp_path / "log").read_text()[-3000:]
    assert {f"good{n}" for n in range(plain)} <= notes(world), "good records were lost among hostile ones"
    letters = world.read(world.dead)
    places = {(letter["partition"], letter["offset"]) for letter in letters}
    assert len(places) == len(letters) > count / 2


def notes(world: World) -> set[str]:
    """The good ones among what was published, without decoding the others."""
    return {found.decode() for _, value in world.records() for found in re.findall(rb'"note":"(good\d+)"', value)}


@pytest.mark.parametrize("name", ["encode", "write"])
def test_what_breaks_a_step_is_found_and_rejected(name: str, tmp_path: Path) -> None:
    """Whatever a record does to the core, the records beside it are not lost, and it is told as unusable."""
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY.format(bootstrap="localhost:1", name="t", more=""))
    loaded, schema = prepare(file)
    core, broken = core_of(schema), {}

    def encode(values, ref, arrived):  # type: ignore[no-untyped-def]
        if any(value is not None and b"BOOM" in value for value in values):
            broken["encode"] = True
            raise RecursionError
        return core.encode(values, ref, arrived)

    def write(groups):  # type: ignore[no-untyped-def]
        if any("BOOM" in str(group.rows.values) for group in groups):
            broken["write"] = True
            raise OverflowError
        return core.write(groups)

    def writable(rows):  # type: ignore[no-untyped-def]
        return ["BOOM" not in str(row) for row in rows.values]

    changed = replace(core, **({"encode": encode} if name == "encode" else {"write": write, "writable": writable}))
    broker, now = MemoryBroker("t-in"), [0.0]
    for topic in ("t-out", "t-dead"):
        broker.create_topic(topic)
    told = Notes()
    worker = Worker(MemoryTransport(broker, "w"), changed, settings_of(loaded.policy), told, clock=lambda: now[0])
    for number in range(9):
        broker.produce("t-in", 0, good(number) if number != 4 else good(4).replace(b'"good4"}', b'"BOOM"}'))
    for turn in range(40):
        if turn == 5:  # those who were beside it in a group look for company again
            for number in range(9, 12):
                broker.produce("t-in", 0, good(number))
        worker.step()
        now[0] += 0.1
    assert broken == {name: True}
    out = [json.loads(entry.value or b"") for entry in broker.read("t-out")]
    dead = [json.loads(entry.value or b"") for entry in broker.read("t-dead")]
    late = sum(int(str(event[-1])) for event in told.seen if event[0] == "suppressed")
    assert late <= 2, "whoever was in a group with it may be due by then"
    assert len({record["note"] for record in out} & {f"good{n}" for n in range(12) if n != 4}) == 11 - late
    assert [(letter["code"], letter["offset"]) for letter in dead] == [("unusable", 4)]


def test_every_hostile_value_is_tried_in_every_field(tmp_path: Path) -> None:
    """In memory, one at a time among good records: each leaves, or is told why not."""
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY.format(bootstrap="localhost:1", name="t", more=""))
    loaded, schema = prepare(file)
    core = core_of(schema)
    for text in TEXTS:
        broker, now = MemoryBroker("t-in"), [0.0]
        for topic in ("t-out", "t-dead"):
            broker.create_topic(topic)
        told, settings = Notes(), settings_of(loaded.policy)
        worker = Worker(MemoryTransport(broker, "w"), core, settings, told, clock=lambda now=now: now[0])
        sent = 0
        for field in ("person", "age", "zip", "when", "weight", "illness", "note"):
            values = {name: json.dumps(value) for name, value in GOOD.items()} | {field: text}
            body = ", ".join(f'"{name}": {value}' for name, value in values.items())
            broker.produce("t-in", 0, f"{{{body}}}".encode("utf-8", "surrogatepass"))
            sent += 1
        for number in range(6):
            broker.produce("t-in", 0, good(number))
        for _ in range(60):
            worker.step()
            now[0] += 0.1
        out = [json.loads(entry.value or b"") for entry in broker.read("t-out")]
        assert {f"good{n}" for n in range(6)} <= {str(record["note"]) for record in out}, text[:40]
        suppressed = sum(int(str(event[-1])) for event in told.seen if event[0] == "suppressed")
        assert len(out) + len(broker.read("t-dead")) + suppressed == sent + 6, text[:40]
        assert worker.state.waiting == 0
