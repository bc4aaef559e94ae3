"""Twenty-two versions of a schema in one topic, on a real broker and registry: each message is read by its own."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from confluent_kafka.serialization import MessageField, SerializationContext
from registry_scene import AVRO, K, Scene, for_avro, until, visits

EACH = 10
Fields = dict[str, dict[str, Any]]


def fields_of(changed: Callable[[Fields], object]) -> list[dict[str, Any]]:
    """The fields of the first version, changed."""
    fields = {field["name"]: copy.deepcopy(field) for field in AVRO["fields"]}  # type: ignore[attr-defined]
    other = changed(fields)
    return list((other if isinstance(other, dict) else fields).values())


def without(name: str) -> Callable[[Fields], object]:
    return lambda fields: {other: field for other, field in fields.items() if other != name}


def renamed(old: str, new: str, *aliases: str) -> Callable[[Fields], object]:
    return lambda fields: fields[old].update(name=new, aliases=list(aliases))


def typed(name: str, kind: Any) -> Callable[[Fields], object]:
    return lambda fields: fields[name].update(type=kind)


def moved(old: str, new: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda record: {new if name == old else name: value for name, value in record.items()}


def put(name: str, make: Callable[[Any], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda record: record | {name: make(record[name])}


def midnight(day: date | None) -> datetime | None:
    return day and datetime(day.year, day.month, day.day, tzinfo=UTC)


def same(record: dict[str, Any]) -> dict[str, Any]:
    return record


ENUM = {"type": "enum", "name": "Diagnosis", "symbols": ["malaria", "asthma", "flu", "ulcer"]}
SSN = {"name": "ssn", "type": "string"}
INSTANT = {"type": "long", "logicalType": "timestamp-millis"}
HOME = {"type": "record", "name": "Home", "fields": [{"name": "code", "type": ["null", "string"], "aliases": ["zip"]}]}
Change = Callable[[Fields], object]
Make = Callable[[dict[str, Any]], dict[str, Any]]
VERSIONS: list[tuple[str, Change, Make, str | None]] = [
    ("the first version", same, same, None),
    ("a field that nobody declared", lambda f: f.update(ssn=SSN), lambda r: r | {"ssn": "SECRET"}, None),
    ("an insensitive field is removed", without("ward"), same, None),
    ("the sensitive field is removed", without("diagnosis"), same, "missing"),
    ("int becomes long", typed("age", "long"), same, None),
    ("a field becomes nullable", typed("age", ["null", "int"]), same, None),
    ("null stands behind", typed("ward", ["int", "string", "null"]), same, None),
    ("a whole number becomes text", typed("age", "string"), put("age", str), "wrong_type"),
    ("a whole number becomes a fraction", typed("age", "double"), put("age", float), "wrong_type"),
    ("renamed by alias", renamed("diagnosis", "illness", "diagnosis"), moved("diagnosis", "illness"), None),
    ("the subject is renamed by alias", renamed("patient", "person", "patient"), moved("patient", "person"), None),
    ("renamed without a word", renamed("age", "years"), moved("age", "years"), "missing"),
    ("renamed inside", typed("home", HOME), put("home", lambda h: {"code": h["zip"]}), None),
    ("an enum grows", typed("diagnosis", ENUM), put("diagnosis", lambda _: "malaria"), None),
    ("an enum becomes text", typed("diagnosis", "string"), same, None),
    ("the fields change places", lambda f: dict(reversed(f.items())), same, None),
    ("a record becomes nullable", lambda f: f["home"].update(type=["null", f["home"]["type"]]), same, None),
    ("a record becomes a map", typed("home", {"type": "map", "values": ["null", "string"]}), same, None),
    ("a date becomes an instant", typed("born", ["null", INSTANT]), put("born", midnight), None),
    ("a date becomes text", typed("born", ["null", "string"]), put("born", lambda b: b and b.isoformat()), None),
    ("a UUID becomes text", typed("patient", "string"), same, None),
    ("a number the registry does not know", same, same, "unknown_schema"),
]  # fmt: skip


def test_twenty_versions_in_one_topic(scenes: Callable[[str], Scene], tmp_path: Path) -> None:
    scene = scenes("avro")
    expected: Counter[str] = Counter()
    for number, (_, change, make, code) in enumerate(VERSIONS):
        serialize = scene.serializer({"fields": fields_of(change)})
        context = SerializationContext(scene.kafka.input, MessageField.VALUE)
        for record in visits(EACH, number * EACH):
            value = serialize(make(for_avro(record)), context)
            scene.send_raw(b"\0\0\0\xff\xff" + value[5:] if code == "unknown_schema" else value)
        expected[code or "published"] += EACH
    scene._producer.flush(30)
    scene.start()
    count = expected.pop("published")
    until(lambda: len(scene.read(scene.kafka.output)) >= count, f"{count} records are published")
    scene.stop()
    assert scene.letters() == expected
    published = scene.published()
    assert len(published) == count
    assert min(Counter(record["_anon"]["group"] for record in published).values()) >= K
    assert Counter(record["diagnosis"] for record in published)["malaria"] == EACH
    assert "SECRET" not in str(published)
    file = tmp_path / "policy.yaml"
    file.write_text(json.dumps(scene.words))
    command = [sys.executable, "-m", "stream_anon", "audit", "kafka:", "-p", str(file), "--raw", "kafka:", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["raw"]["matched"] == count
