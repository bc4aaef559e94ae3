"""What every batch algorithm loses and costs: CPU seconds, peak of memory, NCP per cell; one line of JSON each.

Adult, the 30,162 rows of its training file, 7 quasi-identifiers, at k = 5, 10, 50 and at k = 5 with l = 3, 5, 7; or a
synthetic table of that shape without `--data`. Every algorithm runs on all rows, each in a process of its own, after a
run that is not measured, and what it made is judged by pycanon. `--large` adds a million rows through mondrian and
sweep. Other libraries are measured where they are installed, and stopped after `--limit` CPU seconds for one k.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import large
import numpy as np
from adult import AGES, QUASI, SENSITIVE, Source, source
from msgspec.structs import replace
from others import OTHERS, judged_k, run_other

from stream_anon.batch import ALGORITHMS, Partition, partition
from stream_anon.batch.support import check
from stream_anon.core.batch import NO_GUARD, Batch
from stream_anon.core.encode import Encoder
from stream_anon.core.hierarchy import Tree
from stream_anon.core.privacy import MODELS, ModelSettings
from stream_anon.core.schema import Schema
from stream_anon.errors import Unsupported

TRAINING = 30_162
SIZES = (5, 10, 50)
DIVERSITIES = (3, 5, 7)
GUARDED = 0.2
"""The share of rows that guard the parent of their value, drawn at random, for the algorithm made for guards."""

LARGE = 1_000_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and hierarchies/; a synthetic table without")
    parser.add_argument("--json", action="store_true", help="print JSON lines instead of a table")
    parser.add_argument("--only", action="append", help="measure only this algorithm; repeatable")
    parser.add_argument("--rows", type=int, default=TRAINING, help="rows of the table")
    parser.add_argument("--limit", type=float, default=600, help="CPU seconds another library may take for one k")
    parser.add_argument("--large", action="store_true", help="a million rows through mondrian and sweep, too")
    parser.add_argument("--synthetic", action="store_true", help="a table of --rows people in parts, see large.py")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.synthetic:
        for line in large.lines(arguments.only or ["mondrian", "sweep"], arguments.rows):
            print(json.dumps(line), flush=True)
        return
    if arguments.one:
        for line in measure(arguments.one, arguments.data, arguments.rows, arguments.limit):
            print(json.dumps(line), flush=True)
        return
    names = [*ALGORITHMS, *OTHERS, *(["mondrian@large", "sweep@large"] if arguments.large else [])]
    for name in arguments.only or names:
        command = [sys.executable, __file__, "--one", name, "--rows", str(arguments.rows)]
        command += ["--limit", str(arguments.limit)]
        command += ["--data", str(arguments.data)] if arguments.data else []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                print(line.rstrip() if arguments.json else _words(json.loads(line)), flush=True)
        if process.returncode:
            print(json.dumps({"algorithm": name, "failed": process.returncode}), flush=True)


def _words(line: dict[str, Any]) -> str:
    if "skipped" in line:
        return f"{line['algorithm']:16} k={line.get('k', '-'):<3} skipped: {line['skipped']}"
    case = f"{line['algorithm']:16} k={line['k']:<3} l={line['l'] or '-':<2} {line['rows']:>9,} rows"
    return (
        f"{case}: NCP {line['ncp']:.4f}, "
        f"{line['suppressed']:>5} suppressed, {line['cpu_seconds']:>6.2f} CPU s {line['peak_mb']:>6.0f} MB"
    )


def measure(name: str, folder: Path | None, count: int, limit: float) -> Iterator[dict[str, Any]]:
    """All lines of one algorithm."""
    name, _, large = name.partition("@")
    with source(folder, limit=count) as found:
        if name in OTHERS:
            yield from run_other(name, found, SIZES, limit)
            return
        cases = [(k, None) for k in SIZES] + ([(5, l) for l in DIVERSITIES] if not large else [])  # noqa: E741
        warm = False
        for k, l in cases:  # noqa: E741
            schema = schema_of(found, name, k, l)
            try:
                check(name, schema)
            except Unsupported as reason:
                if l is None or name != "guarding":
                    yield {"algorithm": name, "k": k, "l": l, "skipped": str(reason)}
                continue
            rows = rows_of(found, schema, guarded=name == "guarding")
            rows = enlarged(rows) if large else rows
            if not warm:
                partition(name, rows.take(slice(0, 400)), schema)
                warm = True
            yield line_of(name, k, l, rows, schema)


def schema_of(found: Source, name: str, k: int, l: int | None) -> Schema:  # noqa: E741
    """Return the schema; guards come in a field that only the algorithm made for them is given."""
    attributes = dict(found.loaded.policy.attributes)
    if name == "guarding":
        attributes[SENSITIVE] = attributes[SENSITIVE].model_copy(update={"guarding_node": "guard"})
    return found.schema(privacy=privacy_of(name, k, l), attributes=attributes)


def privacy_of(name: str, k: int, l: int | None) -> list[ModelSettings]:  # noqa: E741
    """Return the models; those made for one model get it even where only k is asked for."""
    models: list[dict[str, Any]] = [{"model": "k_anonymity", "k": k}]
    if name == "lc-clustering":
        models.append({"model": "lc_anonymity", "attribute": SENSITIVE, "c": 0.4, "l": l or 2})
    elif l or name == "l-clustering":
        models.append({"model": "l_diversity", "attribute": SENSITIVE, "l": l or 2})
    if name == "guarding":
        models.append({"model": "guarding_node", "attribute": SENSITIVE, "p": 0.5})
    return [MODELS[model["model"]].model_validate(model) for model in models]


def line_of(name: str, k: int, l: int | None, rows: Batch, schema: Schema) -> dict[str, Any]:  # noqa: E741
    """Run once and describe what came of it."""
    begin = time.process_time()
    found = partition(name, rows, schema)
    spent = time.process_time() - begin
    lost = sum(group.loss * len(group.rows) for group in found.groups) + len(found.suppressed)
    return {
        "algorithm": name,
        "k": k,
        "l": l,
        "rows": len(rows),
        "cpu_seconds": round(spent, 3),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10, 1),
        "ncp": round(lost / len(rows), 5),
        "suppressed": len(found.suppressed),
        "classes": len(found.groups),
        "judged_k": _judged(found) if len(rows) < LARGE else min(group.people for group in found.groups),
    }


def _judged(found: Partition) -> int | None:
    """k as pycanon sees it in the published labels; None if it, or pandas, is not installed."""
    try:
        import pandas
    except ImportError:
        return None
    labels = [tuple(map(str, group.labels)) for group in found.groups for _ in range(len(group.rows))]
    return judged_k(pandas.DataFrame(labels, columns=list(QUASI)))


def rows_of(found: Source, schema: Schema, guarded: bool = False) -> Batch:
    """Return the rows, encoded."""
    n = len(found.rows)
    ref = np.stack([np.zeros(n, dtype=np.int64), np.arange(n)], axis=1)
    encoded = Encoder(schema).encode(found.rows, ref, np.zeros(n))
    if encoded.rejections:
        sys.exit(f"{len(encoded.rejections)} rows were rejected: {encoded.rejections[0]}")
    rows, tree = encoded.batch, schema.sensitive[0].hierarchy
    if guarded and isinstance(tree, Tree):
        wish = np.random.default_rng(1).random((n, 1)) < GUARDED
        rows = replace(rows, guard=np.where(wish, tree.parent[rows.sensitive], NO_GUARD))
    return rows


def enlarged(rows: Batch, count: int = LARGE, seed: int = 0) -> Batch:
    """Rows drawn again and again, ages moved by up to three years, one column in twenty taken from another row."""
    rng = np.random.default_rng(seed)
    drawn = rows.take(rng.integers(0, len(rows), count))
    qi = drawn.qi.copy()
    qi[:, 0] = np.clip(qi[:, 0] + rng.integers(-3, 4, count), *AGES)
    for q in (1, 2, 3):
        other = rng.random(count) < 0.05
        qi[other, q] = rows.qi[rng.integers(0, len(rows), int(other.sum())), q]
    number = np.arange(count)
    return replace(drawn, qi=qi, subject=number, ref=np.stack([np.zeros_like(number), number], axis=1))


if __name__ == "__main__":
    main()
