"""The real broker of a test run: KAFKA_BOOTSTRAP, else Docker, else one brought by pip; one for all processes."""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

collect_ignore = ["chaos/warm.py"]  # compiles when it is imported, which is what it is for

SHARED = "STREAM_ANON_TEST_SHARED"
"""The variable with the folder in which the processes of one run find what they share."""

os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")  # a broker of some minutes is not worth optimizing


def _starts_others(session: pytest.Session) -> bool:
    return bool(getattr(session.config.option, "numprocesses", None)) and not hasattr(session.config, "workerinput")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Before several test processes start: compile the kernels once, instead of in each of them."""
    if not _starts_others(session):
        return
    os.environ[SHARED] = tempfile.mkdtemp(prefix="stream-anon-tests-")
    if find_spec("numba") is not None:
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


def pytest_sessionfinish(session: pytest.Session) -> None:
    """After the last of several test processes: end the broker and the registry that one of them started."""
    if _starts_others(session) and SHARED in os.environ:
        folder = Path(os.environ.pop(SHARED))
        for file in (folder / "broker", folder / "registry"):
            if file.exists():
                made, pid = pickle.loads(file.read_bytes())
                os.kill(pid, signal.SIGKILL)
                shutil.rmtree(made.folder, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def local_broker() -> Iterator[object]:
    """A broker of the test run alone. Other tests use it at the same time: it must not be restarted."""
    yield from _of_this_run("broker", _broker)


@pytest.fixture(scope="session")
def local_registry() -> Iterator[object]:
    """A schema registry of the test run alone. Other tests use it at the same time: it must not be restarted."""
    yield from _of_this_run("registry", _registry)


def _of_this_run(what: str, start: Callable[[], Any]) -> Iterator[Any]:
    shared = os.environ.get(SHARED)
    try:
        found = _shared(Path(shared), what, start) if shared else start()
    except Exception as error:
        if os.environ.get("STREAM_ANON_REQUIRE_ALL"):
            raise
        pytest.skip(f"no local {what}: {error}")
    yield found
    if not shared:
        found.remove()


def _broker() -> Any:
    from stream_anon.kafka.local_broker.broker import LocalBroker

    return LocalBroker(sasl=True).start()


def _registry() -> Any:
    from stream_anon.kafka.local_broker.registry import LocalRegistry

    return LocalRegistry().start()


def _shared(folder: Path, what: str, start: Callable[[], Any]) -> Any:
    """Start it, or find the one that another process of this run has started."""
    with (folder / f"{what}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / what).exists():
            made = start()
            pid, made._process = made.pid, None  # it outlives this process
            (folder / what).write_bytes(pickle.dumps((made, pid)))
        return pickle.loads((folder / what).read_bytes())[0]


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where a real Kafka answers."""
    if address := os.environ.get("KAFKA_BOOTSTRAP"):
        yield address
        return
    if _docker_answers():
        from testcontainers.kafka import KafkaContainer

        with KafkaContainer("apache/kafka:4.2.1") as container:
            yield container.get_bootstrap_server()
            return
    yield request.getfixturevalue("local_broker").bootstrap


@pytest.fixture
def name() -> str:
    """A name nobody used before, for topics and groups."""
    return f"t{uuid4().hex[:10]}"
