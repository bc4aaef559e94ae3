"""How a running command is asked to end: the first signal ends it in good order, the second at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import typer

INTERRUPTED = 130


class Interrupt:
    """Whether, and by which signal, the command was asked to end."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self.signal: int | None = None
        self._stop = stop

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
        self._stop()

    def leave(self) -> None:
        """End with 130 after Ctrl-C; being told to terminate, and having done so in order, is no failure."""
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
