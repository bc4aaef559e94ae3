"""A topic that is not what the policy describes is told, counted and, where a limit is set, ends the run."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

from stream_anon.observe.limits import Limits
from stream_anon.observe.observer import Observer, Observers
from stream_anon.observe.watch import RejectionWatch


def watched(limits: Limits = Limits()) -> tuple[RejectionWatch, list[bool]]:  # noqa: B008
    stopped: list[bool] = []
    return RejectionWatch(limits, lambda: stopped.append(True)), stopped


def rounds(watch: RejectionWatch, count: int, rejected: int, code: str = "not_json") -> None:
    for _ in range(count):
        watch.consumed(100)
        if rejected:
            watch.rejected(code, rejected)
        watch.alive()


def test_the_first_hundred_records_tell(caplog: pytest.LogCaptureFixture) -> None:
    watch, stopped = watched()
    with caplog.at_level(logging.INFO):
        rounds(watch, 1, 100, "registry_framing")
    assert "schema-registry framing" in watch.warning
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert not stopped, "without a limit it goes on: the broker keeps what is not read"
    assert watch.ended() is not None, "but it was no success"


def test_it_is_told_once_and_taken_back(caplog: pytest.LogCaptureFixture) -> None:
    watch, _ = watched()
    with caplog.at_level(logging.INFO):
        rounds(watch, 30, 0)
        rounds(watch, 30, 60)
        assert watch.warning
        rounds(watch, 30, 0)
    assert watch.warning == ""
    assert Counter(record.levelname for record in caplog.records) == {"WARNING": 1, "INFO": 1}
    assert watch.ended() is None


def test_half_is_not_most() -> None:
    watch, _ = watched()
    rounds(watch, 50, 50)
    assert watch.warning == ""


LIMITS = [
    # remark, limits, rejected and suppressed of each hundred, stops
    ("below", Limits(rejected=0.1), 10, 0, False),
    ("above", Limits(rejected=0.1), 11, 0, True),
    ("none at all", Limits(rejected=0.0), 1, 0, True),
    ("suppressed", Limits(suppressed=0.2), 0, 21, True),
    ("suppressed below", Limits(suppressed=0.2), 0, 20, False),
]


@pytest.mark.parametrize(
    ("limits", "rejected", "suppressed", "stops"), [c[1:] for c in LIMITS], ids=[c[0] for c in LIMITS]
)
def test_limits_stop_the_worker_once(limits: Limits, rejected: int, suppressed: int, stops: bool) -> None:
    watch, stopped = watched(limits)
    for _ in range(3):
        watch.suppressed("deadline", suppressed)
        rounds(watch, 1, rejected)
    assert stopped == [True] * stops
    assert (watch.ended() is not None) == stops


def test_observers_hear_everything() -> None:
    """A method added to the observer reaches all of them without being named again."""
    heard: list[str] = []

    class Listener(Observer):
        def alive(self) -> None:
            heard.append("alive")

        def lag(self, partition: int, records: int) -> None:
            heard.append(f"{partition}:{records}")

    several = Observers(Listener(), Observer(), Listener())
    several.alive()
    several.lag(1, 2)
    assert heard == ["alive", "alive", "1:2", "1:2"]
    for name in vars(Observer):
        if not name.startswith("_"):
            assert name in vars(several)
