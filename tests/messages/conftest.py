"""A real schema registry for the tests of messages; it is started once for each process that needs it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from registry_scene import Scene

from stream_anon.kafka.local_broker.broker import LocalBroker
from stream_anon.kafka.local_broker.registry import LocalRegistry


@pytest.fixture(scope="session")
def local_registry() -> Iterator[LocalRegistry]:
    """A registry of this process alone: it may be stopped and started again."""
    try:
        registry = LocalRegistry().start()
    except Exception as error:
        if os.environ.get("STREAM_ANON_REQUIRE_ALL"):
            raise
        pytest.skip(f"no schema registry: {error}")
    yield registry
    registry.remove()


@pytest.fixture
def scenes(local_broker: LocalBroker, local_registry: LocalRegistry, name: str) -> Iterator[Callable[[str], Scene]]:
    made: list[Scene] = []

    def make(format_: str) -> Scene:
        made.append(Scene(local_broker, local_registry, name, format_))
        return made[-1]

    yield make
    for scene in made:
        scene._stop.set()
