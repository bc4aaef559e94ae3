"""The watchdog ends what does not return, and only that."""

from __future__ import annotations

import threading
import time

from stream_anon.kafka.watchdog import Watchdog


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
