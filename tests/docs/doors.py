"""Count the doors of one record: the functions of the package that are given it, or return it, on its way through.

`python tests/docs/doors.py [--list] [run] [pipe] [anonymize]` prints a line of JSON for each way. A planted value tells
where the record is: in bytes, in rows, in groups and in plans; loops and kernels that see only its numbers, and
generators, do not count.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import numpy as np

from stream_anon.cli import run_command as command
from stream_anon.cli.prepare import prepare
from stream_anon.core.gate import Group
from stream_anon.formats.text.lines import Lines
from stream_anon.local.pipe import Pipe
from stream_anon.testing.memory import MemoryTransport
from stream_anon.testing.memory_log import MemoryBroker
from stream_anon.worker.factory import core_of, settings_of
from stream_anon.worker.loop import Worker

MARK = "PLANTED"
POLICY = """
version: 1
name: doors
secret: a secret only for the tests, of no value
subject: person
attributes:
  person: {role: identifier}
  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 99], snap: [5]}}
  zip: {role: quasi_identifier, type: category, hierarchy: {kind: prefix, length: 3}}
  illness: {role: sensitive, type: category}
  note: {role: insensitive}
privacy: [{model: k_anonymity, k: 3}]
stream: {max_delay: {time: 1s, records: 30}}
kafka: {bootstrap: "localhost:1", group: g, input: in, output: out, dead_letter: dead}
"""


def holds(thing: Any, depth: int = 5) -> bool:
    """Whether the planted value is in there."""
    if isinstance(thing, bytes | str):
        return (MARK.encode() if isinstance(thing, bytes) else MARK) in thing
    if depth == 0 or thing is None or isinstance(thing, int | float | type):
        return False
    if isinstance(thing, np.ndarray):
        return thing.dtype == object and any(holds(each, depth - 1) for each in thing.ravel().tolist())
    if isinstance(thing, dict):
        return any(holds(each, depth - 1) for each in thing.values())
    if isinstance(thing, list | tuple):
        return any(holds(each, depth - 1) for each in thing)
    if isinstance(thing, Group):
        return holds(thing.rows, depth - 1)
    if isinstance(thing, msgspec.Struct):
        return any(holds(getattr(thing, name), depth - 1) for name in thing.__struct_fields__)
    if is_dataclass(thing):
        return any(holds(getattr(thing, field.name, None), depth - 1) for field in fields(thing))
    return False


class Doors:
    """The functions that a record passes, in the order of its first visit to each."""

    def __init__(self) -> None:
        self.found: dict[str, int] = {}
        self._looking = False

    def during(self, work: Callable[[], object]) -> Doors:
        sys.setprofile(self._look)
        try:
            work()
        finally:
            sys.setprofile(None)
        return self

    def _look(self, frame: FrameType, event: str, result: object) -> None:
        code = frame.f_code
        _, inside, place = code.co_filename.rpartition("/stream_anon/")
        if self._looking or event not in ("call", "return") or not inside or code.co_name.startswith("<"):
            return
        if place.startswith("testing/"):
            return
        self._looking = True
        given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        things = [frame.f_locals.get(name) for name in given if name not in ("self", "cls")]
        if any(map(holds, things)) if event == "call" else holds(result):
            self.found.setdefault(f"{place} {code.co_qualname}", len(self.found))
        self._looking = False


def records(count: int, planted: int) -> list[bytes]:
    return [
        json.dumps(
            {
                "person": f"p{n}",
                "age": n * 37 % 100,
                "zip": f"{n * 7:03}",
                "illness": "flu",
                "note": MARK if n == planted else "-",
            }
        ).encode()
        for n in range(count)
    ]


def by_run(policy: Path) -> Doors:
    loaded, schema = prepare(policy)
    broker, now = MemoryBroker("in"), [0.0]
    for topic in ("out", "dead"):
        broker.create_topic(topic)
    transport = MemoryTransport(broker, "w")
    worker = Worker(transport, core_of(schema), settings_of(loaded.policy), clock=lambda: now[0])
    for record in records(30, planted=12):
        broker.produce("in", 0, record)

    def work() -> None:
        for _ in range(200):
            worker.step()
            now[0] += 0.05
        assert any(holds(entry.value) for entry in broker.read("out")), "the record did not leave"

    return Doors().during(work)


def by_pipe(policy: Path) -> Doors:
    _, schema = prepare(policy)
    with tempfile.TemporaryFile() as source:
        source.write(b"\n".join(records(30, planted=12)) + b"\n")
        source.seek(0)
        now = iter(range(10_000))
        pipe = Pipe(schema, Lines(source.fileno()), io.BytesIO(), lambda rejections: None, lambda: next(now) / 1000)
        return Doors().during(pipe.run)


def by_anonymize(policy: Path) -> Doors:
    table, out = policy.with_name("table.jsonl"), policy.with_name("out.jsonl")
    table.write_bytes(b"\n".join(records(30, planted=12)) + b"\n")
    return Doors().during(lambda: command(["anonymize", str(table), "-p", str(policy), "-o", str(out), "--force"]))


WAYS = {"run": by_run, "pipe": by_pipe, "anonymize": by_anonymize}


def count(way: str) -> dict[str, int]:
    """The doors of one way, by their first visit."""
    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder) / "policy.yaml"
        policy.write_text(POLICY)
        return WAYS[way](policy).found


if __name__ == "__main__":
    for way in [way for way in WAYS if way in sys.argv] or WAYS:
        doors = count(way)
        sys.stdout.write(json.dumps({"way": way, "doors": len(doors)}) + "\n")
        if "--list" in sys.argv:
            sys.stdout.write("".join(f"  {door}\n" for door in doors))
