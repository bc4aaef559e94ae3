"""Large synthetic tables, from a Parquet file to a Parquet file by the command: CPU seconds, memory and loss.

`python benchmarks/batch.py --synthetic --rows 10_000_000` runs this. People with an age, a sex, one of `--values` zip
codes and one of 40 jobs; zip codes have the uneven frequencies of real ones. Memory is the sum of all processes.

What it costs against rows and against different values, a JSON line for each run, and drawn:

    python benchmarks/large.py --rows 10_000 100_000 1_000_000 10_000_000 > large.jsonl
    python benchmarks/large.py --rows 100_000 --values 10 100 1_000 10_000 100_000 >> large.jsonl
    python benchmarks/large.py --draw large.jsonl --plot large.svg
    python benchmarks/large.py --rows 1_000_000 --algorithm mondrian --spark 'local[2]'
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

AT_ONCE = 500_000
ALGORITHMS = ("mondrian", "sweep")
ROWS, VALUES = 100_000, 2_000
"""The rows at which values vary, and the values at which rows do."""
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


def make(path: Path, rows: int, values: int = VALUES, seed: int = 1) -> None:
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
    algorithm: str, rows: int, values: int = VALUES, parts: str | None = "auto", workers: int = 2
) -> dict[str, Any]:
    """Anonymize a table by the command and return what it says, with the peak of memory of all its processes.

    CPU seconds are those of the command and its processes from their start to their end; making the table is not in.
    """
    with TemporaryDirectory() as made:
        place = Path(made)
        (place / "policy.yaml").write_text(POLICY, encoding="utf-8")
        make(place / "t.parquet", rows, values)
        command = [sys.executable, "-m", "stream_anon", "anonymize", str(place / "t.parquet")]
        command += ["-p", str(place / "policy.yaml"), "-o", str(place / "o.parquet"), "-a", algorithm, "--json"]
        command += ["--parts", parts, "--workers", str(workers)] if parts else []
        before = _ended()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            peak = 0
            while process.poll() is None:
                peak = max(peak, sum(_memory(pid) for pid in _family(process.pid)))
                time.sleep(0.2)
            found = json.loads(process.stdout.read() if process.stdout else "")
        keys = ("algorithm", "rows", "published", "suppressed", "classes", "loss", "seconds")
        line = {key: found[key] for key in keys} | {"cpu_seconds": round(_ended() - before, 2)}
        line |= {"k": 5, "values": values, "peak_mb": round(peak / 2**20)}
        return line | {"parts": len(found.get("parts", [0])), "smallest": found["smallest_group_people"]}


def by_spark(algorithm: str, rows: int, master: str, memory: str = "4g") -> dict[str, Any]:
    """Anonymize a table by the command on Spark, and return what it says, with CPU seconds and memory of everything.

    The JVM and its Python processes do not end as children that are waited for, so their seconds are read as they run.
    """
    with TemporaryDirectory() as made:
        place = Path(made)
        (place / "policy.yaml").write_text(POLICY, encoding="utf-8")
        make(place / "t.parquet", rows)
        command = [sys.executable, "-m", "stream_anon", "anonymize", str(place / "t.parquet"), "-a", algorithm]
        command += ["-p", str(place / "policy.yaml"), "-o", str(place / "o.parquet")]
        command += ["--engine", "spark", "--master", master, "--json"]
        own = {"PYSPARK_SUBMIT_ARGS": f"--driver-memory {memory} pyspark-shell", "PYSPARK_PYTHON": sys.executable}
        begin, spent, peak = time.monotonic(), dict[int, float](), 0
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **own}, **quiet) as process:  # type: ignore[call-overload]
            while process.poll() is None:
                family = list(_family(process.pid))
                spent |= {pid: seconds for pid in family if (seconds := _seconds(pid))}
                peak = max(peak, sum(map(_memory, family)))
                time.sleep(0.2)
            found = json.loads(process.stdout.read())
    keys = ("engine", "algorithm", "rows", "published", "suppressed", "classes", "loss")
    line = {key: found[key] for key in keys} | {"k": 5, "values": VALUES}
    line |= {"parts": len(found["parts"]), "smallest": found["smallest_group_people"]}
    seconds = {"seconds": round(time.monotonic() - begin, 1), "cpu_seconds": round(sum(spent.values()), 1)}
    return line | seconds | {"peak_mb": round(peak / 2**20)}


def _ended() -> float:
    """Return the CPU seconds of all processes that this one started and that have ended, and of those below them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _seconds(pid: int) -> float:
    """Return the CPU seconds of a process so far."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _family(pid: int) -> Iterator[int]:
    """Yield a process and all below it, whichever of its threads started them: those of a JVM are many."""
    yield pid
    try:
        children = [children.read_text() for children in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return
    for child in " ".join(children).split():
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


def exponent(points: list[tuple[int, float]]) -> float:
    """Return the slope of cost against size where both are logarithms: 1 is in proportion."""
    size, cost = np.log(np.array(points, dtype=np.float64)).T
    return float(np.polyfit(size, cost, 1)[0])


def draw(cases: list[dict[str, Any]], path: Path) -> None:
    """Draw CPU seconds against rows and against different values."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.4))
    for panel, axis, other, fixed in ((panels[0], "rows", "values", VALUES), (panels[1], "values", "rows", ROWS)):
        for algorithm in ALGORITHMS:
            line = sorted(
                (case[axis], case["cpu_seconds"])
                for case in cases
                if (case["algorithm"], case[other]) == (algorithm, fixed)
            )
            if len(line) > 1:
                steep = f", exponent {exponent(line):.2f}" if axis == "rows" else ""
                panel.plot(*zip(*line, strict=True), marker="o", label=f"{algorithm}{steep}")
        label = "rows" if axis == "rows" else f"different zip codes among {ROWS:,} rows"
        panel.set(xscale="log", yscale="log", xlabel=label, title="CPU seconds")
        panel.grid(alpha=0.3)
        panel.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure every case and print it as it is done, or draw what was printed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=[10_000, ROWS])
    parser.add_argument("--values", nargs="+", type=int, default=[VALUES], help="different zip codes")
    parser.add_argument("--algorithm", nargs="+", choices=ALGORITHMS, default=ALGORITHMS)
    parser.add_argument("--spark", metavar="MASTER", help="by Spark there, local[2] say, instead of by parts")
    parser.add_argument("--json", action="store_true", help="print lines of JSON, as it does in any case")
    parser.add_argument("--draw", type=Path, help="draw these lines instead of measuring")
    parser.add_argument("--plot", type=Path, default=Path("large.svg"), help="the .svg or .png to draw")
    arguments = parser.parse_args()
    if arguments.draw:
        cases = [json.loads(line) for line in arguments.draw.read_text(encoding="utf-8").splitlines() if line]
        draw(cases, arguments.plot)
        return
    for algorithm in arguments.algorithm:
        if arguments.spark:
            for rows in arguments.rows:
                print(json.dumps(by_spark(algorithm, rows, arguments.spark)), flush=True)
            continue
        measured(algorithm, 1_000)  # compile
        for rows in arguments.rows:
            for values in arguments.values:
                print(json.dumps(measured(algorithm, rows, values)), flush=True)


if __name__ == "__main__":
    main()
