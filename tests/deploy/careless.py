"""The program with a broken algorithm, which lets the first row go alone: the gate stops it, and the worker ends."""

from __future__ import annotations

import sys
from typing import Any

from stream_anon import cli
from stream_anon.core.gate import Reason, release
from stream_anon.core.schema import Schema
from stream_anon.worker import factory as build

careful = build.build_engine


def careless(schema: Schema) -> Any:
    engine = careful(schema)
    engine.push = lambda rows, now, **_: release(rows.take(slice(0, 1)), schema, Reason.READY)  # type: ignore[method-assign]
    return engine


if __name__ == "__main__":
    build.build_engine = careless
    sys.exit(cli.run_command(sys.argv[1:]))
