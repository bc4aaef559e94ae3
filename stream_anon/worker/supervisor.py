"""Several worker processes as one: started, restarted after a failure, ended together; knows no record."""

from __future__ import annotations

import logging
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_log = logging.getLogger("stream_anon.supervisor")

FINAL = frozenset({2, 3, 5, 70})
"""Exit codes after which another start would end the same way, or must not be tried: usage, policy, too much lost,
violation."""

_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0  # seconds before a failed worker is started again; doubled each time
_PROVEN = 60.0  # seconds after which a worker counts as well, and its failures are forgotten
_TRIES = 6  # failures in a row after which all end: whoever supervises this process should know
_PATIENCE = 90.0  # seconds to drain, far more than a worker takes by itself, even one that waits to be read
_ROUND = 0.1


@dataclass(slots=True)
class _Slot:
    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    failures: int = 0
    due: float = 0.0


class Supervisor:
    """A supervisor of one process per command.

    A failed process is restarted after a wait, as the others take over its partitions meanwhile; a privacy violation or
    a configuration error ends all.

    Each process holds the reading end of a pipe as its input: when this one is gone, it reads the end and leaves.
    """

    def __init__(self, commands: Sequence[Sequence[str]], clock: Callable[[], float] = time.monotonic) -> None:
        self._slots = [_Slot(list(command)) for command in commands]
        self._clock = clock
        self._stopping = threading.Event()
        self.restarts = 0

    def stop(self) -> None:
        """Ask all to drain and end; safe to call from a signal handler."""
        self._stopping.set()

    @property
    def stopping(self) -> bool:
        """Whether all were asked to end."""
        return self._stopping.is_set()

    @property
    def running(self) -> list[bool]:
        """Whether each of the slots has a running process."""
        return [slot.process is not None and slot.process.poll() is None for slot in self._slots]

    def run(self) -> int:
        """Work until stopped or until restarting is useless; return the exit code of the whole."""
        try:
            code = None
            while code is None and not self._stopping.is_set():
                code = self._look_after()
                self._stopping.wait(_ROUND)
            ended = self._end()
            return code if code is not None else ended
        finally:
            self._kill()

    def _look_after(self) -> int | None:
        """Start what is due and judge what ended; return a code when all have to end."""
        now = self._clock()
        for slot in self._slots:
            if slot.process is None:
                if now >= slot.due:
                    self._start(slot, now)
                continue
            code = slot.process.poll()
            if code is None:
                if now - slot.started > _PROVEN:
                    slot.failures = 0
                continue
            slot.process = None
            slot.failures += 1
            _log.error("worker ended", extra={"code": code, "worker": self._slots.index(slot)})
            if code in FINAL:
                return code
            if slot.failures >= _TRIES:
                return 1
            slot.due = now + min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** (slot.failures - 1))
        return None

    def _start(self, slot: _Slot, now: float) -> None:
        self.restarts += slot.failures > 0
        slot.started = now
        # A session of its own: Ctrl-C reaches this process, which passes it on in order.
        slot.process = subprocess.Popen(slot.command, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603 - our own command

    def _end(self) -> int:
        """Ask all to drain at once: partitions would only move between those that leave."""
        for process in self._processes():
            process.send_signal(signal.SIGTERM)
        until, codes = self._clock() + _PATIENCE, set()
        for process in self._processes():
            try:
                codes.add(process.wait(max(0.1, until - self._clock())))
            except subprocess.TimeoutExpired:
                codes.add(1)
        return max(codes & FINAL, default=int(not codes <= {0, -signal.SIGTERM}))

    def _kill(self) -> None:
        for process in self._processes():
            if process.poll() is None:
                process.kill()
                process.wait()

    def _processes(self) -> list[subprocess.Popen[bytes]]:
        return [slot.process for slot in self._slots if slot.process is not None]
