"""Other libraries on the same table, where they are installed: anonypy (Mondrian) and anjana (full-domain)."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from adult import QUASI, SENSITIVE, Source

from stream_anon.core.loss.table import Partition, ncp_per_cell
from stream_anon.core.schema import Schema

OTHERS = ("anonypy", "anjana")


def run_other(name: str, found: Source, sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    """One line per k, or one that says why there is none."""
    if find_spec(name) is None or find_spec("pandas") is None:
        yield {"algorithm": name, "skipped": f"not installed: pip install {name} pandas"}
        return
    for k in sizes:
        schema = found.schema()
        begin = time.process_time()
        try:
            classes = {"anonypy": _anonypy, "anjana": _anjana}[name](found, schema, k)
        except Exception as error:
            yield {"algorithm": name, "k": k, "skipped": f"it failed: {type(error).__name__}: {error}"}
            continue
        spent = time.process_time() - begin
        columns = [c.hierarchy.encode([row[c.name] for row in found.rows])[0] for c in schema.quasi]
        table = Partition(np.stack(columns, axis=1), classes, [c.hierarchy for c in schema.quasi])
        yield {
            "algorithm": name,
            "k": k,
            "l": None,
            "rows": len(found.rows),
            "cpu_seconds": round(spent, 3),
            "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10, 1),
            "ncp": round(ncp_per_cell(table), 5),
            "suppressed": table.suppressed,
            "classes": len(classes),
            "judged_k": int(table.sizes().min()),
        }


def _anonypy(found: Source, schema: Schema, k: int) -> list[np.ndarray]:
    """Its Mondrian's partitions, priced by our hierarchies, tightened."""
    import anonypy  # type: ignore[import-not-found,unused-ignore]
    import pandas

    frame = pandas.DataFrame(found.rows)[[*QUASI, SENSITIVE]]
    for name in (*QUASI[1:], SENSITIVE):
        frame[name] = frame[name].astype("category")
    made = anonypy.Preserver(frame, list(QUASI), SENSITIVE)
    mondrian = made.modrian if hasattr(made, "modrian") else made.mondrian
    return [np.asarray(index) for index in mondrian.partition(k)]


def _anjana(found: Source, schema: Schema, k: int) -> list[np.ndarray]:
    """Full-domain k-anonymity with at most 5 % of the rows suppressed; classes are the equal rows of its table."""
    import pandas
    from anjana.anonymity import k_anonymity  # type: ignore[import-not-found,unused-ignore]

    frame = pandas.DataFrame(found.rows)[[*QUASI, SENSITIVE]]
    ages = frame["age"].to_numpy()
    ladders: dict[str, dict[int, np.ndarray]] = {
        "age": {0: ages, **{i: (ages // w * w).astype(str) for i, w in enumerate((5, 10, 20, 40), start=1)}}
    }
    ladders["age"][5] = np.full(len(ages), "*")
    for column in schema.quasi[1:]:
        tree: Any = column.hierarchy
        node = tree.encode(frame[column.name].tolist())[0]
        rungs = {0: frame[column.name].to_numpy()}
        while len(np.unique(node)) > 1:
            node = np.where(tree.parent[node] >= 0, tree.parent[node], node)
            rungs[len(rungs)] = np.array([tree.labels[v] for v in node])
        ladders[column.name] = rungs
    frame["row"] = np.arange(len(frame))
    result = k_anonymity(frame, [], list(QUASI), k, 5, ladders)
    return [np.asarray(index) for index in result.groupby(list(QUASI), observed=True)["row"].apply(list)]
