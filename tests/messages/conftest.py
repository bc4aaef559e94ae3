"""What the tests of messages share: clients of others around a worker, on a real broker with a real registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from registry_scene import Scene

from stream_anon.kafka.local_broker.broker import LocalBroker
from stream_anon.kafka.local_broker.registry import LocalRegistry


@pytest.fixture
def scenes(local_broker: LocalBroker, local_registry: LocalRegistry, name: str) -> Iterator[Callable[[str], Scene]]:
    made: list[Scene] = []

    def make(format_: str) -> Scene:
        made.append(Scene(local_broker, local_registry, name, format_))
        return made[-1]

    yield make
    for scene in made:
        scene._stop.set()
