"""`stream-anon anonymize --engine spark`: a table that Spark reads, into a folder that Spark writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import typer

from stream_anon.errors import Unsupported
from stream_anon.local.parts.divided import Told
from stream_anon.observe.limits import Limits
from stream_anon.observe.tally import Tally
from stream_anon.policy import Policy


@dataclass(frozen=True)
class SparkRun:
    """What was asked for: where the table is and where records go, paths or addresses, and by which algorithm."""

    data: str
    out: str
    master: str | None
    algorithm: str
    options: dict[str, Any]
    seed: int
    parts: str | None
    force: bool
    limits: Limits
    told: Told | None = None


def anonymize_by_spark(asked: SparkRun, policy: Policy) -> tuple[Tally, list[dict[str, Any]], dict[str, Any]]:
    """Read, anonymize and write by Spark; return the counts, what was told of each part, and the summary."""
    try:
        from pyspark.sql import SparkSession

        from stream_anon.spark import anonymize
    except ImportError:
        raise Unsupported("Spark is not installed: pip install 'stream-anon[spark]'") from None
    if asked.parts not in (None, "auto") and not (asked.parts or "").isdecimal():
        raise typer.BadParameter("auto, or a number from 1 on", param_hint="--parts")
    number = int(asked.parts) if asked.parts and asked.parts.isdecimal() else None
    builder = SparkSession.builder.appName("stream-anon")
    session = (builder.master(asked.master) if asked.master else builder).getOrCreate()
    reading, writing = session.read, _kind(asked.out, "parquet")
    if writing == "csv":
        raise Unsupported("records have lists and structures: Spark writes them to .parquet or .json, not to CSV")
    kind = _kind(asked.data, "parquet")
    frame = (reading.option("header", True) if kind == "csv" else reading).format(kind).load(asked.data)
    result = anonymize(frame, policy, asked.algorithm, asked.options, asked.seed, number, told=asked.told).persist()
    try:
        figures = result.figures()
        tally = result.tally(figures)
        asked.limits.check(tally)
        result.in_order.write.mode("overwrite" if asked.force else "error").format(writing).save(asked.out)
    finally:
        result.unpersist()
    return tally, [part["told"] for part in figures if "told" in part], result.summary(figures) | {"engine": "spark"}


def _kind(path: str, otherwise: str) -> str:
    suffix = PurePosixPath(path.rstrip("/")).suffix.lower()
    return {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}.get(suffix, otherwise)
