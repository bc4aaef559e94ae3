"""A watch that warns when most records are rejected, and asks the worker to stop when a limit is exceeded.

Fed by a worker like any observer; says so once in the log, keeps it for whoever asks for the status, and asks the
worker to stop where the policy or the operator set a limit.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from stream_anon.core.decode import Reject
from stream_anon.observe.limits import ENOUGH, Limits
from stream_anon.observe.observer import Observer

_log = logging.getLogger("stream_anon.watch")

WINDOW = 1_000
"""Records over which "most" is judged again and again; the first `ENOUGH` are judged by themselves."""

MOST = 0.5


class RejectionWatch(Observer):
    """An observer of read, rejected and suppressed records. `warning` is set while most recent records are rejected."""

    def __init__(self, limits: Limits, stop: Callable[[], None]) -> None:
        self.warning = ""
        self.broken: str | None = None
        self._limits = limits
        self._stop = stop
        self._read = self._suppressed = 0
        self._codes: Counter[str] = Counter()
        self._recent_read = 0
        self._recent: Counter[str] = Counter()

    def consumed(self, records: int) -> None:
        """Count records that were read."""
        self._read += records
        self._recent_read += records

    def rejected(self, code: str, records: int) -> None:
        """Count rejected records by code."""
        self._codes[code] += records
        self._recent[code] += records

    def suppressed(self, reason: str, records: int) -> None:
        """Count rows that were suppressed."""
        self._suppressed += records

    def alive(self) -> None:
        """Judge the records of the last rounds."""
        window = ENOUGH if self._read == self._recent_read and not self.warning else WINDOW
        if self._recent_read >= window:
            self._judge()
        if self.broken is None:
            self.broken = self._limits.exceeded(self._read, self._codes, self._suppressed)
            if self.broken is not None:
                _log.error("the worker stops: too much is lost", extra={"why": self.broken})
                self._stop()

    def ended(self) -> str | None:
        """Return the limit that the whole run exceeds, None if none: a run that rejected everything has failed."""
        return self.broken or self._limits.exceeded(self._read, self._codes, self._suppressed, ended=True)

    def _judge(self) -> None:
        read, recent = self._recent_read, self._recent
        self._recent_read, self._recent = 0, Counter()
        if recent.total() <= MOST * read:
            if self.warning:
                _log.info("most records are accepted again")
            self.warning = ""
            return
        [(code, count)] = recent.most_common(1)
        share = f"{recent.total():,} of the last {read:,} records were rejected, {count:,} of them as {code}"
        new, self.warning = not self.warning, f"{share}{_HINTS.get(code, '')}"
        if new:
            _log.warning("most records are rejected", extra={"why": self.warning})


_HINTS: dict[str, str] = {
    Reject.REGISTRY_FRAMING: ": the topic looks like schema-registry framing (Avro, Protobuf or JSON Schema), not JSON",
    Reject.NOT_JSON: ": the topic is not JSON",
    Reject.MISSING: ": the policy names fields that the records do not have",
}
