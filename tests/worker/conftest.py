"""The world on a real broker, through kafka-python unless a test asks for each client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from broker_world import World


@pytest.fixture
def client() -> str:
    return "kafka-python"


@pytest.fixture
def world(bootstrap: str, name: str, client: str) -> Iterator[World]:
    made = World(bootstrap, name, client)
    yield made
    made.close()
