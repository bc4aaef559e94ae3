"""Other libraries on the same table, where they are installed: anonypy (Mondrian) and anjana (full-domain)."""

from __future__ import annotations

import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from adult import QUASI, SENSITIVE, Source

from stream_anon.core.loss.table import Partition, ncp_per_cell
from stream_anon.core.schema import Schema

OTHERS = ("anonypy", "anjana")

Made = tuple[list[np.ndarray], Any]
"""Classes of row numbers, and the table the library publishes."""


class Stopped(Exception):
    """It took longer than it was given."""


def run_other(name: str, found: Source, sizes: Sequence[int], limit: float) -> Iterator[dict[str, Any]]:
    """One line per k, or one that says why there is none; each k may take `limit` CPU seconds."""
    missing = [module for module in (name, "pandas") if find_spec(module) is None]
    if missing:
        yield {"algorithm": name, "skipped": f"not installed: pip install {' '.join(missing)}"}
        return
    for k in sizes:
        schema, case = found.schema(), {"algorithm": name, "k": k, "l": None, "rows": len(found.rows)}
        begin = time.process_time()
        try:
            with at_most(limit):
                classes, table = {"anonypy": _anonypy, "anjana": _anjana}[name](found, schema, k)
        except Stopped:
            yield case | {"skipped": f"stopped after {limit:.0f} CPU seconds"}
            continue
        spent = time.process_time() - begin
        columns = [c.hierarchy.encode([row[c.name] for row in found.rows])[0] for c in schema.quasi]
        made = Partition(np.stack(columns, axis=1), classes, [c.hierarchy for c in schema.quasi])
        yield case | {
            "cpu_seconds": round(spent, 3),
            "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10, 1),
            "ncp": round(ncp_per_cell(made), 5),
            "suppressed": made.suppressed,
            "classes": len(classes),
            "judged_k": judged_k(table),
        }


def judged_k(table: Any) -> int | None:
    """k as pycanon counts it in a table of labels; None if `make` did not install pycanon (tests/oracle)."""
    folder = Path(sys.prefix) / "oracle"
    if not (folder / "pycanon").is_dir():
        return None
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    from pycanon.anonymity import k_anonymity

    return int(k_anonymity(table, list(QUASI)))


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `Stopped` after so many CPU seconds."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _anonypy(found: Source, schema: Schema, k: int) -> Made:
    """Its Mondrian and its table; the classes are priced by our hierarchies, tightened."""
    import anonypy
    import pandas

    frame = pandas.DataFrame(found.rows)[[*QUASI, SENSITIVE]]
    for name in (*QUASI[1:], SENSITIVE):
        frame[name] = frame[name].astype("category")
    classes = anonypy.Mondrian(frame, list(QUASI), SENSITIVE).partition(k)
    counted = pandas.DataFrame(anonypy.anonymize(frame, classes, list(QUASI), SENSITIVE))
    for name in QUASI:
        counted[name] = counted[name].str[0]
    table = counted.loc[counted.index.repeat(counted["count"])].reset_index(drop=True)
    return [np.asarray(index) for index in classes], table


def _anjana(found: Source, schema: Schema, k: int) -> Made:
    """Full-domain k-anonymity with at most 5 % of the rows suppressed; classes are the equal rows of its table.

    It looks every cell up in its ladder one by one, so a ladder holds each value once: with a line for every row of
    the table, as it may also be given, the work is the square of the rows.
    """
    import pandas
    from anjana.anonymity import k_anonymity

    frame = pandas.DataFrame(found.rows)[[*QUASI, SENSITIVE]]
    ladders: dict[str, dict[int, Any]] = {}
    for column in schema.quasi:
        values = np.array(sorted(set(frame[column.name])))
        rungs: dict[int, Any] = {0: values}
        if column.name == "age":
            rungs |= {i: (values // w * w).astype(str) for i, w in enumerate((5, 10, 20, 40), start=1)}
            rungs[5] = np.full(len(values), "*")
        else:
            tree: Any = column.hierarchy
            node = tree.encode(values.tolist())[0]
            while len(np.unique(node)) > 1:
                node = np.where(tree.parent[node] >= 0, tree.parent[node], node)
                rungs[len(rungs)] = np.array([tree.labels[v] for v in node])
        ladders[column.name] = rungs
    frame["row"] = np.arange(len(frame))
    table = k_anonymity(frame, [], list(QUASI), k, 5, ladders)
    classes = [np.asarray(index) for index in table.groupby(list(QUASI), observed=True)["row"].apply(list)]
    return classes, table.reset_index(drop=True)
