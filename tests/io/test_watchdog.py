"""The watchdog ends what does not return, and only that."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from inspect import getmembers, isfunction

import pytest

from stream_anon.kafka.clients import client_of
from stream_anon.kafka.transport import Transport
from stream_anon.kafka.watchdog import Watchdog, guarded


def test_a_call_that_returns_in_time_is_left_alone() -> None:
    ended: list[str] = []
    guard = Watchdog(0.4, ended.append)
    for _ in range(6):
        with guard("short"):
            time.sleep(0.1)
    assert not ended


def test_a_call_that_hangs_is_noticed_beside_another_threads_calls() -> None:
    ended: list[str] = []
    told, guard = threading.Event(), Watchdog(0.4, lambda call: (ended.append(call), told.set())[0])

    def hang() -> None:
        with guard("hanging"):
            told.wait(10)

    thread = threading.Thread(target=hang)
    thread.start()
    while not told.is_set() and thread.is_alive():
        with guard("short"), guard("inner"):
            time.sleep(0.05)
    thread.join()
    assert ended == ["hanging"]


def test_what_is_called_inside_has_no_longer_than_what_is_around_it() -> None:
    told, ended = threading.Event(), list[str]()
    guard = Watchdog(0.6, lambda call: (ended.append(call), told.set())[0])
    began = time.monotonic()
    with guard("outer", 0.5):
        time.sleep(0.3)
        while not told.is_set() and time.monotonic() < began + 5.0:
            with guard("inner"):
                told.wait(0.1)
    assert ended == ["inner"]


class Client:
    """Calls that return, and calls that do not."""

    def __init__(self) -> None:
        self.told, self.ended = threading.Event(), list[str]()
        self._watchdog = Watchdog(0.4, lambda call: (self.ended.append(call), self.told.set())[0])

    @guarded()
    def hang(self) -> bool:
        """Return when the watchdog has told."""
        return self.told.wait(5)

    @guarded()
    def read(self, hang: bool) -> Iterator[int]:
        """Yield, and then perhaps wait for the watchdog."""
        yield from range(3)
        assert not hang or self.told.wait(5)


def test_a_guarded_method_that_hangs_is_noticed() -> None:
    client = Client()
    assert client.hang()
    assert client.ended == ["hang"]


def test_of_a_generator_each_step_is_guarded_and_not_what_its_reader_does() -> None:
    client = Client()
    for _ in client.read(hang=False):
        time.sleep(0.3)
    assert not client.ended
    assert list(client.read(hang=True)) == [0, 1, 2]
    assert client.ended == ["read"]


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
def test_every_call_of_a_client_is_guarded(client: str) -> None:
    calls = {name for name, _ in getmembers(Transport, isfunction) if not name.startswith("_")} - {"run_in_background"}
    kind = client_of(client).transport
    assert len(calls) >= 19
    assert [name for name in sorted(calls) if not hasattr(getattr(kind, name), "__wrapped__")] == []
