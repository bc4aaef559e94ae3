"""`stream-anon anonymize --engine spark`: a table that Spark reads, into a folder that Spark writes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import typer

from stream_anon.errors import TooMuchLost, Unsupported
from stream_anon.observe.limits import Limits
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


def anonymize_by_spark(asked: SparkRun, policy: Policy) -> dict[str, Any]:
    """Read, anonymize and write by Spark, and return the counts of all parts together."""
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
    result = anonymize(frame, policy, asked.algorithm, asked.options, asked.seed, number)
    found = _together([row.asDict() for row in result.metrics.collect()], asked)
    codes = Counter({"rows that the policy does not describe": found["rejected"]})
    if (broken := asked.limits.exceeded(found["rows"], codes, found["suppressed"], ended=True)) is not None:
        raise TooMuchLost(broken)
    table = result.table.persist()  # sorting looks at it twice
    ordered = table.orderBy("_anon.group", "_anon.row")  # the order of parts would narrow labels down
    ordered.write.mode("overwrite" if asked.force else "error").format(writing).save(asked.out)
    table.unpersist()
    return found


def _kind(path: str, otherwise: str) -> str:
    suffix = PurePosixPath(path.rstrip("/")).suffix.lower()
    return {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}.get(suffix, otherwise)


def _together(parts: list[dict[str, Any]], asked: SparkRun) -> dict[str, Any]:
    count = {
        name: sum(part[name] for part in parts) for name in ("rows", "rejected", "published", "suppressed", "groups")
    }
    lost = sum(part["loss"] * (part["published"] + part["suppressed"]) for part in parts)
    left = count["published"] + count["suppressed"]
    smallest = min((part["smallest"] for part in parts if part["published"]), default=0)
    return {
        "engine": "spark",
        "algorithm": asked.algorithm,
        **count,
        "smallest": smallest,
        "loss": round(lost / left, 5) if left else 0.0,
        "parts": [part["rows"] for part in sorted(parts, key=lambda part: part["part"])],
        "output": asked.out,
    }
