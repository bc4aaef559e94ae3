"""Logs as one JSON object a line: time, level, event and declared fields; whatever else a caller adds is left out.

What the client libraries say is told without its values, and what they repeat is told once a minute with its count.
"""

from __future__ import annotations

import json
import linecache
import logging
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any

FIELDS = {"partition", "code", "remedy", "reason", "groups", "records", "replayed", "result", "why", "call"}
FIELDS |= {"left_waiting", "port", "policy", "generation", "error", "worker", "partitions", "step"}
SUMMARY = (
    "verdict",
    "consumed",
    "published",
    "suppressed",
    "rejected",
    "missed",
    "waiting",
    "lag",
    "delay_p99",
    "loss",
)
FIELDS |= set(SUMMARY)
"""The only fields that are ever written. None of them is made from a record."""

WINDOW = 60.0
"""Seconds during which a client's message is logged once; then its count, if it came again."""

_Place = tuple[str, str, str, int]


class JsonLines(logging.Formatter):
    """A log formatter that writes one object a line, without tracebacks or arguments: they may quote data."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the JSON line of a log record."""
        line: dict[str, object] = {"time": _time(record.created), "level": record.levelname.lower()}
        line |= {"logger": record.name}
        if _own(record):
            line["event"] = record.msg
        else:
            line |= {"event": "client message", **_of_a_client(record)}
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        line.update({name: value for name, value in vars(record).items() if name in FIELDS})
        return self.write(line)

    def write(self, line: dict[str, object]) -> str:
        """Return the fields of a line as text."""
        return json.dumps(line, default=str)


class PlainLines(JsonLines):
    """A log formatter that writes the same fields in words: the time, the event, and what belongs to it."""

    def write(self, line: dict[str, object]) -> str:
        """Return the fields of a line as words.

        >>> PlainLines().write({"time": "2026-01-02T03:04:05.678+00:00", "level": "error", "logger": "x", "event": "e",
        ... "partition": 3})
        '03:04:05 ERROR e: partition 3'
        """
        rest = {name: value for name, value in line.items() if name not in ("time", "level", "logger", "event")}
        level = "" if line["level"] == "info" else f" {str(line['level']).upper()}"
        told = ", ".join(f"{name} {value}" for name, value in rest.items() if value is not None)
        return f"{str(line['time'])[11:19]}{level} {line['event']}{f': {told}' if told else ''}"


@dataclass(slots=True)
class _Repeats:
    """How often a message came again, and when it came first and last."""

    record: logging.LogRecord
    last: float
    count: int = 0


class Handler(logging.StreamHandler[Any]):
    """Writes our own records at once, and those of clients once per place in their source and `WINDOW`."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        super().__init__(stream or sys.stderr)
        self._seen: dict[_Place, _Repeats] = {}
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or count it."""
        if _own(record):
            super().emit(record)
            return
        place = record.name, str(getattr(record, "error", "")), record.pathname, record.lineno
        with self._guard:
            known = self._seen.get(place)
            if known is not None:
                known.count, known.last = known.count + 1, record.created
                return
            self._seen[place] = _Repeats(record, record.created)
        super().emit(record)
        later = threading.Timer(WINDOW, self._tell, [place])
        later.daemon = True
        later.start()

    def _tell(self, place: _Place) -> None:
        """Say how often a message came again; the next one is told at once."""
        with self._guard:
            known = self._seen.pop(place, None)
        if known is not None and known.count:
            told = logging.makeLogRecord(vars(known.record))
            told.repeated = {"count": known.count, "first": _time(told.created), "last": _time(known.last)}
            told.created = known.last
            super().emit(told)

    def close(self) -> None:
        """Write what was only counted, as the process ends."""
        for place in list(self._seen):
            self._tell(place)
        super().close()


def log_to(stream: IO[str] | None = None, level: int = logging.INFO, plain: bool = False) -> None:
    """Write our logs, and those of clients from warnings on, as JSON lines, or `plain` words."""
    handler = Handler(stream)
    handler.setFormatter(PlainLines() if plain else JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("stream_anon").setLevel(level)
    logging.getLogger("kafka").setLevel(logging.ERROR)


def _own(record: logging.LogRecord) -> bool:
    return record.name.startswith("stream_anon")


def _of_a_client(record: logging.LogRecord) -> dict[str, object]:
    """Tell a message without its values: the words its source has, the kinds of errors, and how often it came again."""
    found: dict[str, object] = {}
    if isinstance(record.msg, str) and (record.args or _is_written(record)):
        found["text"] = record.msg
    arguments = record.args.values() if isinstance(record.args, dict) else record.args or ()
    if kinds := [type(one).__name__ for one in (record.msg, *arguments) if isinstance(one, BaseException)]:
        found["error"] = ", ".join(kinds)
    return found | getattr(record, "repeated", {})


def _is_written(record: logging.LogRecord) -> bool:
    """Whether a message without arguments stands in the source as it is, and was not put together from values."""
    near = range(record.lineno, record.lineno + 4)
    return bool(record.msg) and record.msg in "".join(linecache.getline(record.pathname, line) for line in near)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
