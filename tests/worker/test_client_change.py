"""A group goes on when its workers change their client: ledgers, places and keys are the same to both."""

from __future__ import annotations

import pytest
from broker_world import World, rows


@pytest.mark.parametrize(
    ("before", "after"), [("kafka-python", "confluent-kafka"), ("confluent-kafka", "kafka-python")]
)
def test_a_successor_with_the_other_client(bootstrap: str, name: str, before: str, after: str) -> None:
    world = World(bootstrap, name, before).create(2)
    try:
        world.produce(*rows(3))
        world.produce(*rows(4, 10), partition=1)
        world.announce_and_leave()
        world.client = after
        successor = world.worker()
        world.published(6, successor)
        world.client = before
        assert world.worker()._transport.facts(world.input) == successor._transport.facts(world.input)
    finally:
        world.close()
