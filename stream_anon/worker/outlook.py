"""Seen from outside the loop: signals are taken, and the lag is told, while a long round computes."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable, Collection, Mapping

from stream_anon.kafka.transport import TransportError

_log = logging.getLogger("stream_anon.worker")
_EVERY = 2.0  # seconds between looks
_LONG = 2.0  # seconds without an end of a round after which this thread tells the lag in the loop's place


class LagWatch:
    """Tells the lag of partitions while the loop does not; asks the broker over a connection of its own.

    `age` is the time since the loop ended a round, `positions` how far it has read each of its partitions, `ends` asks
    the broker where they end, and `tell` takes the number of a partition and its lag.
    """

    def __init__(
        self,
        age: Callable[[], float],
        positions: Callable[[], Mapping[int, int]],
        ends: Callable[[], Mapping[int, int]],
        tell: Callable[[int, int], None],
    ) -> None:
        self._age, self._positions, self._ends, self._tell = age, positions, ends, tell

    def start(self) -> None:
        """Look every few seconds, in a thread that ends with the process."""
        threading.Thread(target=self._watch, name="lag", daemon=True).start()

    def look(self) -> None:
        """Tell the lags if the loop has been in one round for long; say nothing where the broker does not answer."""
        if self._age() < _LONG:
            return
        try:
            ends = self._ends()
        except TransportError:
            return
        for number, position in self._positions().items():
            if number in ends:
                self._tell(number, max(0, ends[number] - position))

    def _watch(self) -> None:
        pause = threading.Event()
        while True:
            pause.wait(_EVERY)
            self.look()


def hear_signals(numbers: Collection[int], heard: Callable[[int], None]) -> None:
    """Call `heard` with the number of each of these signals at once, from a thread of its own.

    Python runs handlers between two steps of the main thread, which a compiled kernel, or a client's call, may hold for
    long; the number of a signal is written here when it comes. Handlers for these signals have to be installed, too.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

    def listen() -> None:
        with writer:  # kept open as long as somebody listens
            while received := reader.recv(1):
                if received[0] in numbers:
                    _log.info("signal received", extra={"reason": signal.Signals(received[0]).name})
                    heard(received[0])

    threading.Thread(target=listen, name="signals", daemon=True).start()
