"""Stop reading where ledgers or memory have no room, and go on when there is some again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from stream_anon.kafka.transport import Transport
from stream_anon.worker.ledger.budget import LedgerBudget
from stream_anon.worker.settings import WorkerSettings
from stream_anon.worker.state.partition import Partition
from stream_anon.worker.state.state import WorkerState


@dataclass(frozen=True, slots=True)
class _Pause:
    """A pause of one partition as it was then: a partition that was restored since is read again."""

    partition: Partition
    since: float


class Throttle:
    """Pauses a partition whose ledger is nearly full until it drains; all of them while too many rows wait."""

    def __init__(self, transport: Transport, settings: WorkerSettings, budget: LedgerBudget) -> None:
        self._transport, self._settings, self._budget = transport, settings, budget
        self._pauses: dict[int, _Pause] = {}

    @property
    def paused(self) -> Collection[int]:
        """The partitions that are not read now."""
        return self._pauses.keys()

    @property
    def _patience(self) -> float:
        """The seconds a full partition may wait for its rows to leave by their deadlines."""
        return 5.0 if self._settings.delay is None else 1.5 * self._settings.delay

    def readable(self, state: WorkerState, unannounced: int) -> int:
        """Return how many records the ledgers have room for. Records that are read again need none."""
        if not state.caught_up:
            return self._settings.poll_records
        windows = {number: partition.window for number, partition in state.partitions.items()}
        fullest = max((window for number, window in windows.items() if number not in self._pauses), default=0.0)
        return self._budget.readable(list(windows.values()), fullest, unannounced)

    def regulate(self, state: WorkerState, now: float) -> None:
        """Pause what has no room, resume what has, and force rows out where a pause does not end by itself."""
        crowded = state.crowded
        for number, pause in list(self._pauses.items()):
            if state.partitions.get(number) is not pause.partition:
                del self._pauses[number]
        for number, partition in state.partitions.items():
            full, pause_ = self._budget.share(partition.window), self._pauses.get(number)
            if pause_ is None:
                if partition.caught_up and (full > self._settings.pause_at or crowded):
                    self._transport.pause([number])
                    self._pauses[number] = _Pause(partition, now)
            elif full < self._settings.resume_at and not crowded:
                self._transport.resume([number])
                del self._pauses[number]
            elif now - pause_.since > self._patience:
                state.force(number, now)
                self._pauses[number] = _Pause(partition, now)
