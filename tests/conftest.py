"""The real broker of a test run: KAFKA_BOOTSTRAP, else Docker, else one brought by pip; started once per process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Before several test processes start: compile the kernels once, instead of in each of them."""
    several = getattr(session.config.option, "numprocesses", None) and not hasattr(session.config, "workerinput")
    if several and find_spec("numba") is not None:
        program = str(Path(__file__).with_name("compile_kernels.py"))
        running = [subprocess.Popen([sys.executable, program, kind]) for kind in ("stream", "batch")]
        codes = [process.wait() for process in running]
        if any(codes):
            raise pytest.UsageError("the kernels could not be compiled: see above")


def _docker_answers() -> bool:
    if shutil.which("docker") is None:
        return False
    try:
        return subprocess.run(["docker", "info"], capture_output=True, timeout=5).returncode == 0
    except subprocess.TimeoutExpired:
        return False


@pytest.fixture(scope="session")
def local_broker() -> Iterator[object]:
    """A broker whose process belongs to the test run: it may be restarted."""
    try:
        from stream_anon.kafka.local_broker.broker import LocalBroker

        broker = LocalBroker(sasl=True).start()
    except Exception as error:
        if os.environ.get("STREAM_ANON_REQUIRE_ALL"):
            raise
        pytest.skip(f"no local broker: {error}")
    yield broker
    broker.remove()


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where a real Kafka answers."""
    if address := os.environ.get("KAFKA_BOOTSTRAP"):
        yield address
        return
    if _docker_answers():
        try:
            from testcontainers.kafka import KafkaContainer
        except ImportError:
            pass
        else:
            with KafkaContainer("apache/kafka:4.2.1") as container:
                yield container.get_bootstrap_server()
                return
    yield request.getfixturevalue("local_broker").bootstrap


@pytest.fixture
def name() -> str:
    """A name nobody used before, for topics and groups."""
    return f"t{uuid4().hex[:10]}"
