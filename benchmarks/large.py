"""Large synthetic tables, from a Parquet file to a Parquet file by the command: CPU seconds, memory and loss.

`python benchmarks/batch.py --synthetic --rows 10_000_000` runs this. People with an age, a sex, one of `--values` zip
codes and one of 40 jobs; zip codes have the uneven frequencies of real ones. Memory is the sum of all processes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

AT_ONCE = 500_000
POLICY = """\
version: 1
name: people
secret: a-secret-of-a-benchmark-no-value
subject: patient
attributes:
  patient: {role: identifier}
  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 120], snap: none}}
  sex: {role: quasi_identifier, type: category, hierarchy: {kind: flat, values: [f, m]}}
  zip: {role: quasi_identifier, type: category, hierarchy: {kind: prefix, length: 5}}
  job: {role: quasi_identifier, type: category, hierarchy: {kind: prefix, length: 5, alphabet: alphanumeric}}
  diagnosis: {role: sensitive}
privacy:
  - {model: k_anonymity, k: 5}
"""


def make(path: Path, rows: int, values: int = 2_000, seed: int = 1) -> None:
    """Write a table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, values + 1)
    zips = pa.array([f"{(i * 49) % 99_991:05d}" for i in range(values)])
    jobs, illnesses = pa.array([f"job{i:02}" for i in range(40)]), pa.array([f"d{i:02}" for i in range(30)])
    writer = None
    for start in range(0, rows, AT_ONCE):
        n = min(AT_ONCE, rows - start)
        table = pa.table(
            {
                "patient": pa.array([f"p{i}" for i in range(start, start + n)]),
                "age": np.clip(rng.gamma(8, 5.2, n), 0, 119).astype(np.int64),
                "sex": pa.array(["f", "m"]).take(pa.array(rng.integers(0, 2, n))),
                "zip": zips.take(pa.array(rng.choice(values, n, p=weights / weights.sum()))),
                "job": jobs.take(pa.array(rng.integers(0, 40, n))),
                "diagnosis": illnesses.take(pa.array(rng.integers(0, 30, n))),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def measured(
    algorithm: str, rows: int, values: int = 2_000, parts: str | None = "auto", workers: int = 2
) -> dict[str, Any]:
    """Anonymize a table by the command and return what it says, with the peak of memory of all its processes."""
    with TemporaryDirectory() as made:
        place = Path(made)
        (place / "policy.yaml").write_text(POLICY, encoding="utf-8")
        make(place / "t.parquet", rows, values)
        command = [sys.executable, "-m", "stream_anon", "anonymize", str(place / "t.parquet")]
        command += ["-p", str(place / "policy.yaml"), "-o", str(place / "o.parquet"), "-a", algorithm, "--json"]
        command += ["--parts", parts, "--workers", str(workers)] if parts else []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            peak = 0
            while process.poll() is None:
                peak = max(peak, sum(_memory(pid) for pid in _family(process.pid)))
                time.sleep(0.2)
            found = json.loads(process.stdout.read() if process.stdout else "")
        keys = ("algorithm", "rows", "published", "suppressed", "classes", "loss", "seconds", "cpu_seconds")
        line = {key: found[key] for key in keys} | {"k": 5, "values": values, "peak_mb": round(peak / 2**20)}
        return line | {"parts": len(found.get("parts", [0])), "smallest": found["smallest_group_people"]}


def _family(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from _family(int(child))


def _memory(pid: int) -> int:
    """Return the proportional set size of a process: pages that several share are divided among them."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))


def lines(algorithms: list[str], rows: int) -> Iterator[dict[str, Any]]:
    """Yield a line per algorithm; up to a million rows, one without parts too, to compare the loss with."""
    for algorithm in algorithms:
        yield measured(algorithm, rows)
        if rows <= 1_000_000:
            yield measured(algorithm, rows, parts=None)
