"""Set records aside that cannot be read yet: their schema is not known, and the registry does not answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from stream_anon.kafka.transport import AbortableError, Polled, Transport
from stream_anon.worker.state.state import WorkerState

_log = logging.getLogger("stream_anon.worker")
_AGAIN_AFTER = 1.0  # seconds until the registry is asked again
_TELL_EVERY = 30.0  # seconds between two messages


class Unread:
    """The partitions whose next records wait for a schema. They are paused, and read again from those records on."""

    def __init__(self, transport: Transport, learn: Callable[[Sequence[bytes | None]], None]) -> None:
        self._transport, self._learn = transport, learn
        self._paused: set[int] = set()
        self._until = self._told = float("-inf")

    @property
    def partitions(self) -> frozenset[int]:
        """The partitions that wait."""
        return frozenset(self._paused)

    def keep_back(self, polled: Polled, now: float) -> Polled:
        """Return what can be read of a poll; the rest is put back, and nothing behind it is taken before."""
        if not polled.slices:
            return polled
        try:
            self._learn([value for part in polled.slices for value in part.values])
        except AbortableError as error:
            waiting = {part.partition for part in polled.slices}
            for part in polled.slices:
                self._transport.seek(part.partition, part.offsets[0])
            self._transport.pause(waiting)
            self._paused |= waiting
            self._until = now + _AGAIN_AFTER
            if now - self._told > _TELL_EVERY:
                self._told = now
                _log.warning("records wait for their schema", extra={"reason": str(error)})
            positions = {number: at for number, at in polled.positions.items() if number not in waiting}
            return replace(polled, slices=(), positions=positions)
        return polled

    def resume(self, state: WorkerState, paused: frozenset[int], now: float) -> None:
        """Read on after a while, but for partitions that are paused for another reason, or no longer ours."""
        if self._paused and now >= self._until:
            self._transport.resume((self._paused & state.partitions.keys()) - paused)
            self._paused.clear()
