"""Topics behind a registry, seen by `init` and `check`; fields that are changed leave through every format."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as ClientSchema
from registry_scene import AVRO, Scene, until, visits

import stream_anon
from stream_anon.cli import run_command


def tagged() -> dict[str, Any]:
    tags = {"patient": ["PII"], "name": ["PII"], "diagnosis": ["PRIVATE"]}
    fields: Any = AVRO["fields"]
    return {"fields": [field | {"confluent:tags": tags.get(field["name"], [])} for field in fields]}


def test_init_reads_roles_from_tags_and_check_asks_the_registry(
    scenes: Callable[[str], Scene], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scenes("avro")
    scene.send(visits(120), tagged())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOWHERE", scene.words["kafka"]["registry"]["url"])
    Path("connection.yaml").write_text(f'kafka: {{bootstrap: "{scene.bootstrap}", registry: {{url: "${{NOWHERE}}"}}}}')
    topic = scene.kafka.input
    assert run_command(["init", f"kafka:{topic}", "--kafka", "connection.yaml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    roles = {column["name"]: column["role"] for column in found["columns"]}
    assert (roles["patient"], roles["name"], roles["diagnosis"]) == ("identifier", "identifier", "sensitive")
    assert (roles["age"], roles["home.zip"]) == ("quasi_identifier", "quasi_identifier")
    text = Path("policy.yaml").read_text()
    assert "SECRET1" not in text
    assert 'format: "avro"' in text
    assert '"${NOWHERE}"' in text, "variables stay variables"
    assert run_command(["check", "policy.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["registry"]["judged"] is True
    subject = f"{topic}-anonymous-value"
    other = '{"type": "record", "name": "Other", "fields": [{"name": "must", "type": "string"}]}'
    scene.client.register_schema(subject, ClientSchema(other, "AVRO"))
    scene.client.set_compatibility(subject, level="FULL")
    assert run_command(["check", "policy.yaml", "--json"]) == 3
    [broken] = json.loads(capsys.readouterr().out)["diagnostics"]
    assert broken["code"] == "breaks-subject"
    monkeypatch.setenv("NOWHERE", "http://127.0.0.1:9")
    assert run_command(["check", "policy.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["registry"]["judged"] is False


@pytest.mark.parametrize("format_", ["avro", "protobuf", "json_schema"])
def test_changed_fields_leave_through_every_format(
    scenes: Callable[[str], Scene], format_: str, tmp_path: Path
) -> None:
    scene = scenes(format_)
    scope = {"rotate": "1d", "by": "born", "purpose": "tests"}
    scene.words["attributes"] |= {
        "patient": {"role": "identifier", "publish": {"kind": "pseudonym", "scope": scope}},
        "name": {"role": "identifier", "publish": {"kind": "mask", "last": 1}},
        "ward": {"role": "insensitive", "publish": {"kind": "round", "step": 10, "missing": "null"}},
    }
    del scene.words["attributes"]["born"]
    scene.policy = stream_anon.Policy.model_validate(scene.words)
    records = [record | {"born": f"2026-03-0{1 + n % 2}"} for n, record in enumerate(visits(60))]
    records += [record | {"age": record["age"] + 1} for record in records]  # each person twice on one day
    records += [record | {"born": "2026-03-05"} for record in records[:60]]  # and once on another one
    scene.send(records)
    scene.start()
    until(lambda: len(scene.read(scene.kafka.output)) >= 180, "all records are published")
    scene.stop()
    published = scene.published()
    assert "SECRET" not in str(published)
    assert not scene.letters()
    tokens: dict[str, int] = defaultdict(int)
    for record in published:
        tokens[record["patient"]] += 1
    assert sorted(tokens.values()) == [1] * 60 + [2] * 60, "equal within a day, another one on another day"
    assert {len(token) for token in tokens} == {32}
    file = tmp_path / "policy.yaml"
    file.write_text(json.dumps(scene.words))
    assert run_command(["audit", "kafka:", "-p", str(file), "--raw", "kafka:"]) == 0
