"""Logs as one JSON object a line: time, level, event and declared fields; other fields are left out."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import IO

FIELDS = {"partition", "code", "remedy", "reason", "groups", "records", "replayed", "result", "why", "call"}
FIELDS |= {"left_waiting", "port", "policy", "generation", "error", "worker"}
"""The only fields that are ever written. None of them is made from a record."""


class JsonLines(logging.Formatter):
    """A log formatter that writes one object a line, without tracebacks or arguments: they may quote data."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the JSON line of a log record."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        own = record.name.startswith("stream_anon")
        line["event"] = record.msg if own else "client message"
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        line.update({name: value for name, value in vars(record).items() if name in FIELDS})
        return json.dumps(line, default=str)


def log_to(stream: IO[str] | None = None, level: int = logging.INFO) -> None:
    """Write our logs, and warnings of client libraries, as JSON lines."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("stream_anon").setLevel(level)
    logging.getLogger("kafka").setLevel(logging.ERROR)
