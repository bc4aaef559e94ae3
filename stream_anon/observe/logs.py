"""Logs as one JSON object a line: time, level, event and declared fields; whatever else a caller adds is left out."""

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
    """One object a line. Tracebacks and arguments are not written: they may quote what they were working on."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
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
    """Write our logs, and those of clients from warnings on, as JSON lines."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("stream_anon").setLevel(level)
    logging.getLogger("kafka").setLevel(logging.ERROR)
