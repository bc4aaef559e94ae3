"""Signals that end a running command: the first ends it in good order, the second at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import typer

INTERRUPTED = 130


class Interrupt:
    """A signal handler that remembers by which signal the command was asked to end."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self.signal: int | None = None
        self._stop = stop

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: ask the command to stop, or end it at once the second time."""
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
        self._stop()

    def leave(self) -> None:
        """Exit with 130 after Ctrl-C; after SIGTERM an orderly end is no failure."""
        if self.signal == signal.SIGINT:
            raise typer.Exit(INTERRUPTED)


@contextmanager
def interruptible(stop: Callable[[], None]) -> Iterator[Interrupt]:
    """Call `stop` on SIGINT or SIGTERM for as long as the block runs."""
    interrupt = Interrupt(stop)
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
