"""A topic whose max.message.bytes was lowered while a worker runs: it says what to set, and goes on once it is set."""

from __future__ import annotations

import pytest
from broker_world import World, each_client
from kafka.admin import ConfigResource

from stream_anon.errors import StreamAnonError
from stream_anon.worker.loop import Worker


def lower(world: World, topic: str, size: int) -> None:
    world.admin.alter_configs([ConfigResource("TOPIC", topic, configs={"max.message.bytes": str(size)})])

    def known() -> bool:
        found = world.admin.describe_configs([ConfigResource("TOPIC", topic)], config_filter="all")
        return int(found["topic"][topic]["max.message.bytes"]["value"]) == size

    world.until(known)


def large(count: int, size: int) -> list[bytes]:
    return [f"{number:05}".encode() + b"x" * size for number in range(count)]


def started(world: World, **settings: object) -> Worker:
    world.create()
    worker = world.worker(**settings)
    worker.ownership.check_topics()
    world.produce(*large(3, 10))
    world.published(3, worker)
    return worker


@each_client
def test_what_was_announced_and_is_too_large_is_said(world: World) -> None:
    worker = started(world)
    world.produce(*large(3, 5_000))
    world.until(lambda: any(p.announced for p in worker.state.partitions.values()), worker)
    lower(world, world.output, 3_000)
    with pytest.raises(StreamAnonError, match=r"set max\.message\.bytes of") as told:
        world.until(lambda: False, worker)
    assert world.output in str(told.value)
    size = int(str(told.value).split(" to ")[-1].split()[0])
    lower(world, world.output, size)
    worker._transport.close()
    world.deserted()
    world.at_least(6, world.worker())  # as told, it goes on
    values = [record["v"] for record in world.read()]
    assert len(values) == len(set(values)) == 6


@each_client
def test_dead_letters_lose_their_payload_before_they_stop_a_worker(world: World) -> None:
    worker = started(world, dead_letter_payload=True)
    lower(world, world.dead, 2_000)
    world.produce(b"bad" + b"x" * 9_000, *large(3, 30))
    world.at_least(6, worker)
    world.until(lambda: len(world.read(world.dead)) == 1, worker)
    world.produce(b"bad" + b"y" * 9_000, b"bad")
    world.until(lambda: len(world.read(world.dead)) == 3, worker)
    letters = world.read(world.dead)
    assert [(letter["code"], "payload" in letter) for letter in letters] == [
        ("not_json", False),
        ("not_json", False),
        ("not_json", True),
    ]
