"""Sample a topic for `init`: its newest records, what their schemas say about fields, and the `kafka` part to write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from stream_anon.cli.kafka_setup import need_clients
from stream_anon.core.decode import Reject, Rejection
from stream_anon.errors import StreamAnonError
from stream_anon.formats.tables import flat
from stream_anon.insight.propose import Hint, hint_of
from stream_anon.insight.sample import Sample
from stream_anon.policy.reading.source import read
from stream_anon.policy.settings import KafkaSettings


@dataclass(frozen=True)
class Connection:
    """How broker and registry are reached. `written` is the same as it is written in the policy: with its variables."""

    settings: KafkaSettings
    written: dict[str, Any] = field(repr=False)


@dataclass
class TopicSample(Sample):
    """The newest records of a topic, and what their schemas tell of their fields."""

    hints: dict[str, Hint] = field(default_factory=dict)
    format: str = "auto"


def connection_of(topic: str, bootstrap: str | None, registry: str | None, file: Path | None) -> Connection:
    """Return how a topic is reached: as a file with a `kafka` part says, then as the options do."""
    plain, written = (_of_file(file, read(file, str(file)).data), _of_file(file, _raw(file))) if file else ({}, {})
    given: dict[str, Any] = {"bootstrap": bootstrap} if bootstrap else {}
    if registry:
        given["registry"] = {**(plain.get("registry") or {}), "url": registry}
    usual = {"bootstrap": "localhost:9092", "group": f"anonymizer-{topic}", "format": "auto"}
    fixed = {"input": topic, "output": f"{topic}-anonymous", "dead_letter": f"{topic}-rejected"}
    kept = ("bootstrap", "client", "registry", "options")
    connecting = {name: value for name, value in (plain | given).items() if name in kept and value is not None}
    try:
        settings = KafkaSettings.model_validate(usual | connecting | fixed)
    except ValidationError as error:
        place = ".".join(str(step) for step in error.errors()[0]["loc"])
        raise StreamAnonError(
            f"{file or 'the connection'}: kafka.{place} is not right: {error.errors()[0]['msg']}"
        ) from None
    if registry:
        given["registry"] = {**(written.get("registry") or {}), "url": registry}
    connecting = {name: value for name, value in (written | given).items() if name in kept and value is not None}
    return Connection(settings, usual | connecting | fixed)


def read_topic(topic: str, connection: Connection, limit: int) -> TopicSample:
    """Read the newest records of all partitions of a topic, up to so many; commits nothing."""
    need_clients()
    from stream_anon.formats.messages.messages import access_of
    from stream_anon.formats.messages.registry import Registry
    from stream_anon.formats.messages.whole import WholeMessages
    from stream_anon.kafka.clients import client_of
    from stream_anon.kafka.reachable import why_not
    from stream_anon.replay.history import TopicHistory

    kafka, slot = connection.settings, f"init-{uuid4().hex[:12]}"
    if (why := why_not(kafka.bootstrap, kafka.options)) is not None:
        raise StreamAnonError(f"{why}; --bootstrap HOST:PORT, or --kafka FILE, says where it is")
    registry = Registry(access_of(kafka.registry)) if kafka.registry else None
    messages = WholeMessages(registry)
    sample = TopicSample(Path(f"kafka:{topic}"))
    transport = client_of(kafka.client).transport(
        kafka.bootstrap,
        f"{kafka.group}-{slot}",
        topic,
        transactional_id=f"stream-anon-{slot}",
        options=dict(kafka.options) | {"group.instance.id": slot},
    )
    try:
        bounds = transport.bounds(topic)
        each = max(1, limit // max(len(bounds), 1))
        newest = {p: (max(first, end - each), end) for p, (first, end) in bounds.items()}
        for part in TopicHistory(transport, topic, newest).parts():
            for number, payload in zip(part.numbers.tolist(), part.payloads, strict=True):
                found = payload if isinstance(payload, Reject) else messages.record(_bytes(payload))
                if isinstance(found, Reject):
                    sample.unread.append(Rejection(number, found))
                else:
                    sample.rows.append({name: value for name, value in flat(found).items() if value != ""})
    finally:
        transport.close()
    latest = registry.latest(f"{topic}-value") if registry is not None else None
    if latest is not None:
        messages.take_notes(latest)  # tags that were added after these messages
    told = {path: hint_of(note.tags, note.text) for path, note in messages.notes.items()}
    sample.hints = {path: hint for path, hint in told.items() if hint is not None}
    sample.format = messages.format if registry is not None else "json"
    return sample


def kafka_lines(connection: Connection, format_: str) -> Sequence[str]:
    """Return the `kafka` part of the policy, as lines of YAML."""
    lines = ["# DECIDE: who reads and writes these topics; run creates none: stream-anon topics does.", "kafka:"]
    for name, value in (connection.written | {"format": format_}).items():
        lines.append(f"  {name}: {json.dumps(value, ensure_ascii=False)}")
    return lines


def _bytes(payload: Any) -> bytes | None:
    return payload if isinstance(payload, bytes) else None


def _raw(file: Path) -> Any:
    """Return the data of a file with its variables as they are written."""
    try:
        return YAML(typ="safe", pure=True).load(file.read_text("utf-8-sig"))
    except (OSError, YAMLError, UnicodeDecodeError):
        raise StreamAnonError(f"{file}: cannot be read as YAML") from None


def _of_file(file: Path, data: Any) -> dict[str, Any]:
    found = data.get("kafka", data) if isinstance(data, dict) else None
    if not isinstance(found, dict):
        raise StreamAnonError(f"{file}: has no part kafka: with bootstrap, options and registry")
    return found
