"""Cost and loss of the default algorithm against the number of rows that wait: windows of a thousand to a million.

Rows are made up as positions, without records, so that the engine alone is measured: five quasi-identifiers, skewed and
correlated. Loss is NCP per cell; processor time is that of the engine's calls. `kept_per_row` is what
the engine keeps about a waiting row beside its own columns, in bytes, when it is about fullest.

    python benchmarks/windows.py --json
    python benchmarks/windows.py --rows 5000000 --delay 1000 10000 100000 1000000 --json --plot windows.svg
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from stream_anon.core.batch import NO_GUARD, UNNUMBERED, Batch
from stream_anon.core.schema import Schema
from stream_anon.policy import Policy
from stream_anon.stream import build

BATCH = 2_000
JOBS = {f"group {g}": [f"job {g}.{i}" for i in range(4)] for g in range(5)}


def main() -> None:
    """Measure every window and print it as it is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000, help="how many rows arrive in each case")
    parser.add_argument("--delay", nargs="+", type=int, default=[1_000, 10_000], help="later arrivals")
    parser.add_argument("--k", nargs="+", type=int, default=[10])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one line of JSON per case")
    parser.add_argument("--plot", type=Path, help="draw cost and loss against the window, as .svg or .png")
    arguments = parser.parse_args()
    cases = []
    for k in arguments.k:
        _run(_schema(k, 1_000), 6_000, arguments.seed)  # compile
        for delay in arguments.delay:
            case = {"k": k, "delay": delay, "rows": arguments.rows}
            case |= _run(_schema(k, delay), arguments.rows, arguments.seed)
            words = "  ".join(f"{name} {value}" for name, value in case.items())
            print(json.dumps(case) if arguments.json else words, flush=True)
            cases.append(case)
    if arguments.plot:
        _plot(cases, arguments.plot)


def _plot(cases: list[dict[str, Any]], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.4))
    for panel, name, title in (
        (panels[0], "rows_per_cpu_second", "rows per CPU second"),
        (panels[1], "ncp", "information lost (NCP per cell)"),
    ):
        for k in sorted({case["k"] for case in cases}):
            line = sorted((case["delay"], case[name]) for case in cases if case["k"] == k)
            panel.plot(*zip(*line, strict=True), marker="o", label=f"k = {k}")
        panel.set(xscale="log", xlabel="window (arrivals)", title=title, ylim=(0, None))
        panel.grid(alpha=0.3)
        panel.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def quasi() -> dict[str, Any]:
    """Return five quasi-identifiers for a policy."""
    tree = {"kind": "tree", "tree": {"any": JOBS}}
    attributes: dict[str, Any] = {
        "age": {"type": "integer", "hierarchy": {"kind": "interval", "range": [0, 99], "snap": "none"}},
        "zip": {"type": "category", "hierarchy": {"kind": "prefix", "length": 4}},
        "job": {"type": "category", "hierarchy": tree},
        "sex": {"type": "category", "hierarchy": {"kind": "flat", "values": ["f", "m"]}},
        "since": {"type": "integer", "hierarchy": {"kind": "interval", "range": [1980, 2026], "snap": [5, 10]}},
    }
    return {name: {"role": "quasi_identifier", **attribute} for name, attribute in attributes.items()}


def _schema(k: int, delay: int) -> Schema:
    return Schema.of(
        Policy.model_validate(
            {
                "version": 1,
                "name": "windows",
                "secret": "for a benchmark alone, and long enough",
                "attributes": quasi(),
                "privacy": [{"model": "k_anonymity", "k": k}],
                "stream": {"max_delay": {"records": delay}, "max_buffer": 2 * delay + 2 * BATCH},
                "algorithm": {"name": "cail"},
            }
        )
    )


def quasi_identifiers(schema: Schema, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return positions: ages around one that follows from the job, few zip codes for most people."""
    job = rng.integers(0, 20, count)
    texts = [f"{code:04d}" for code in rng.zipf(1.3, count) % 10_000]
    columns = [
        np.clip(rng.normal(30 + job, 14, count), 0, 99).astype(np.int64),
        schema.quasi[1].hierarchy.encode(texts)[0],
        job,
        rng.integers(0, 2, count),
        np.clip(2026 - rng.exponential(9, count), 1980, 2026).astype(np.int64),
    ]
    return np.stack(columns, axis=1)


def _rows(schema: Schema, count: int, first: int, rng: np.random.Generator) -> Batch:
    nothing = np.empty((count, 0), dtype=np.int64)
    number = np.arange(first, first + count)
    return Batch(
        qi=quasi_identifiers(schema, count, rng),
        sensitive=nothing,
        guard=np.full((count, 0), NO_GUARD),
        psf=nothing,
        subject=number,
        arrived=np.zeros(count),
        ref=np.stack([np.zeros(count, dtype=np.int64), number], axis=1),
        serial=np.full(count, UNNUMBERED),
        values=np.empty((count, 0), dtype=object),
    )


def _run(schema: Schema, rows: int, seed: int) -> dict[str, Any]:
    rng, engine = np.random.default_rng(seed), build(schema)
    spent = lost = 0.0
    left = longest = fullest = kept = 0
    for first in range(0, rows, BATCH):
        batch = _rows(schema, min(BATCH, rows - first), first, rng)
        begin = time.process_time()
        outcome = engine.push(batch, 0.0)
        took = time.process_time() - begin
        spent, longest = spent + took, max(longest, took)
        left += sum(map(len, outcome.groups))
        lost += sum(group.loss * len(group) for group in outcome.groups)
        if len(engine) > 1.02 * fullest:
            fullest = len(engine)
            kept = round((_bytes(engine, set()) - _bytes(engine.waiting(), set())) / fullest)
    return {
        "rows_per_cpu_second": round(rows / spent),
        "ncp": round(lost / max(left, 1), 5),
        "left_in_time": left,
        "longest_call_s": round(longest, 3),
        "fullest": fullest,
        "kept_per_row": kept,
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def _bytes(thing: Any, seen: set[int]) -> int:
    """Return the size of all arrays that a thing of this package holds, or its parts do; not those of its policy."""
    if id(thing) in seen or isinstance(thing, Schema):
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, dict):
        parts = [*thing.values()]
    elif isinstance(thing, (list, tuple)):
        parts = [*thing]
    else:
        names = [*getattr(thing, "__dict__", ()), *getattr(thing, "__struct_fields__", ())]
        parts = [getattr(thing, name) for name in names if type(thing).__module__.startswith("stream_anon")]
    return sum(_bytes(part, seen) for part in parts)


if __name__ == "__main__":
    main()
