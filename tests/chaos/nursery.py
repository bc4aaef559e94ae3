"""Worker processes that start at once: children of one process that has imported everything and compiled the kernels.

A start of its own costs a worker seconds of processor time, and a failure test starts workers all the time.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["warm"])
_PATHS = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
os.environ["PYTHONPATH"] = os.pathsep.join(_PATHS)  # the parent of all workers is a new interpreter, which finds `warm`


class Member:
    """One worker process, with the verbs of `subprocess.Popen`."""

    def __init__(self, arguments: dict[str, Any], log: Path) -> None:
        self._process = _CONTEXT.Process(target=_work, args=(arguments, str(log)), daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal unless it has ended."""
        if self._process.is_alive():
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it without a word."""
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; raise as `subprocess` does if it has not in time."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("worker", timeout or 0.0)
        return self._process.exitcode


def _work(arguments: dict[str, Any], log: str) -> None:
    """Be a worker, in a child process, that writes to its log."""
    from worker import work

    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(file, 1)
    os.dup2(file, 2)
    work(**arguments)
