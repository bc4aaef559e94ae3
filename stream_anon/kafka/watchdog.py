"""A watchdog that ends the process when a call without a time-out of its own does not return."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, TypeVar

_log = logging.getLogger("stream_anon.watchdog")


_Method = TypeVar("_Method", bound=Callable[..., Any])


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
        """Guard what is called inside, for the usual time or less, and no longer than what is around it."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
            self._thread.start()
        me = threading.get_ident()
        outer = self._guarded.get(me)
        until = time.monotonic() + min(seconds or self.seconds, self.seconds)
        self._guarded[me] = (call, until) if outer is None else (call, min(until, outer[1]))
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


def guarded(seconds: float | None = None) -> Callable[[_Method], _Method]:
    """Guard a method by its object's `_watchdog`, a generator at each step.

    A client's own time-outs are promises that it does not always keep.
    """

    def guard(method: _Method) -> _Method:
        name = method.__name__

        @wraps(method)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            with self._watchdog(name, seconds):
                return method(self, *args, **kwargs)

        @wraps(method)
        def steps(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
            found = method(self, *args, **kwargs)
            while True:
                with self._watchdog(name, seconds):
                    one = next(found, found)
                if one is found:
                    return
                yield one

        return steps if isgeneratorfunction(method) else call  # type: ignore[return-value]

    return guard
