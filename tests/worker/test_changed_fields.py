"""Changed fields through a worker that dies: what was announced is published again with the same bytes."""

from __future__ import annotations

import json
from typing import Any

from memory_world import World

from stream_anon.core.schema import Schema
from stream_anon.policy import Policy
from stream_anon.worker.factory import core_of
from stream_anon.worker.loop import Worker

SECRET = "a secret only for the tests, of no value"


def schema() -> Schema:
    sex = {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "flat", "values": ["f", "m"]}}
    attributes: dict[str, Any] = {
        "who": {"role": "identifier", "publish": {"kind": "pseudonym", "scope": {"rotate": "1d", "by": "at"}}},
        "born": {"role": "identifier", "publish": {"kind": "shift", "days": 30}},
        "note": {"role": "insensitive", "publish": "redact"},
        "sex": sex,
    }
    data = {"version": 1, "name": "t", "subject": "who", "secret": SECRET, "attributes": attributes}
    data |= {"privacy": [{"model": "k_anonymity", "k": 3}], "stream": {"max_delay": {"time": "2s"}}}
    return Schema.of(Policy.model_validate(data))


def record(i: int) -> bytes:
    at = None if i == 4 else f"2026-03-0{1 + i % 2}T12:00:00Z"
    told = {"who": f"Person{i}", "born": "1980-05-05", "note": f"person{i}: x", "sex": "f", "at": at}
    return json.dumps(told).encode()


def crash_in_the_middle_of_publishing(world: World, worker: Worker) -> None:
    """End the process when a group was announced and sent, before its transaction is committed."""

    class Crash(BaseException):
        pass

    def before(name: str) -> None:
        if name == "commit" and world.broker.read("out", False):
            raise Crash

    worker._transport._before = before  # type: ignore[attr-defined]
    for _ in range(40):
        try:
            worker.step()
        except Crash:
            break
        world.now += 0.3
    else:
        raise AssertionError("nothing was published")
    world.broker.leave("w")
    world.broker.expire("w")


def test_a_successor_publishes_the_same_bytes_and_nothing_holds_the_originals() -> None:
    world = World()
    world.produce(*map(record, range(10)))
    crash_in_the_middle_of_publishing(world, world.worker(core=core_of(schema()), delay=2.0))
    first = [bytes(entry.value or b"") for entry in world.broker.read("out", False)]
    assert first
    assert world.out() == []
    world.go(world.worker("x", core=core_of(schema()), delay=2.0), rounds=40)
    published = [bytes(entry.value or b"") for entry in world.broker.read("out", True)]
    assert set(first) <= set(published)
    assert len(published) == len(set(published)) == 9
    letters = [bytes(entry.value or b"") for entry in world.broker.read("dead", True)]
    assert [json.loads(letter)["code"] for letter in letters] == ["missing"]
    ledgers = [str(offset).encode() for offset in world.broker.committed.values()]
    assert ledgers
    for text in (*published, *letters, *ledgers):
        assert b"erson" not in text
        assert b"1980-05-05" not in text
