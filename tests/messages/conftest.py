"""A real schema registry for the tests of messages; it is started once for each process that needs it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from stream_anon.kafka.local_broker.registry import LocalRegistry


@pytest.fixture(scope="session")
def local_registry() -> Iterator[LocalRegistry]:
    """A registry of this process alone: it may be stopped and started again, and then has forgotten everything."""
    try:
        registry = LocalRegistry().start()
    except Exception as error:
        if os.environ.get("STREAM_ANON_REQUIRE_ALL"):
            raise
        pytest.skip(f"no schema registry: {error}")
    yield registry
    registry.remove()
