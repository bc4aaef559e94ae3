"""A watchdog that ends the process when a call without a time-out of its own does not return."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator

_log = logging.getLogger("stream_anon.watchdog")


def _exit(call: str) -> None:
    _log.critical("call did not return", extra={"call": call})
    os._exit(1)


class Watchdog:
    """A guard of one call at a time per thread. The successor of a worker aborts what it leaves open."""

    def __init__(self, seconds: float = 45.0, end: Callable[[str], None] = _exit) -> None:
        self.seconds = seconds
        self._end = end
        self._guarded: dict[int, tuple[str, float]] = {}
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def __call__(self, call: str, seconds: float | None = None) -> Iterator[None]:
        """Guard the calls made inside, for the usual time or for this many seconds."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
            self._thread.start()
        me = threading.get_ident()
        outer = self._guarded.get(me)
        self._guarded[me] = (call, time.monotonic() + (seconds or self.seconds))
        try:
            yield
        finally:
            if outer is None:
                del self._guarded[me]
            else:
                self._guarded[me] = outer

    def _watch(self) -> None:
        while True:
            time.sleep(min(1.0, self.seconds / 4))
            late = [call for call, until in list(self._guarded.values()) if time.monotonic() > until]
            if late:
                self._end(late[0])
                return
