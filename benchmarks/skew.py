"""Every privacy model on even and on skewed values: speed, share published and lateness of the default algorithm.

Five quasi-identifiers, ten sensitive values of which one has the share said (even, 80 %, 97 %), k = 10, a bound of
1,000 arrivals. Each model is as strict as the table can bear with something to spare; what no window can satisfy is not
asked for. With `by_job`, values follow a quasi-identifier, so that rows which are alike mostly share one. `table 4` is
the source's personal (l, c): an l of 2 to 10 for each of 14 values.

    python benchmarks/stream.py --skew --json
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from windows import quasi, quasi_identifiers

from stream_anon.core.batch import NO_GUARD, UNNUMBERED, Batch
from stream_anon.core.schema import Schema
from stream_anon.policy import Policy
from stream_anon.stream import build

K, DELAY, BATCH = 10, 1_000, 1_000
LEAVES = [f"v{i}" for i in range(14)]
TREE = {"any": {f"w{g}": LEAVES[5 * g : 5 * g + 5] for g in range(3)}}
TABLE_4 = (10, 10, 9, 8, 8, 8, 7, 7, 6, 5, 4, 3, 2, 2)
SKEWS = {"even": None, "80 %": 0.8, "97 %": 0.97}


def shares(top: float | None, values: int = 10) -> np.ndarray:
    """Return the share of each value: even, or one of them `top`."""
    return np.full(values, 1 / values) if top is None else np.r_[top, np.full(values - 1, (1 - top) / (values - 1))]


def models(share: np.ndarray) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every built-in model."""
    top, entropy = float(share.max()), float(np.exp(-(share * np.log(share)).sum()))
    bound = round(top + (1 - top) * 0.4, 3)
    reference = {leaf: float(s) for leaf, s in zip(LEAVES, share, strict=False)}
    diversity, closeness = {"model": "l_diversity"}, {"model": "t_closeness", "reference": reference}
    yield "distinct", diversity | {"l": 3}
    yield "entropy", diversity | {"l": round(1 + (entropy - 1) * 0.6, 3), "variant": "entropy"}
    yield "recursive", diversity | {"l": 2, "variant": "recursive", "c": round(1.7 * top / (1 - top), 2)}
    yield "l and c", {"model": "lc_anonymity", "l": 3, "c": bound}
    yield "alpha", {"model": "alpha_k", "k": K, "alpha": bound}
    yield "t, equal", closeness | {"t": 0.4 if top < 0.5 else round(0.8 * (1 - top), 3)}
    yield "t, ordered", closeness | {"t": 0.25 if top < 0.5 else round(0.6 * (1 - top), 3), "distance": "ordered"}
    yield "guarding", {"model": "guarding_node", "p": 0.6 if top < 0.5 else 0.99}
    if top < 0.5:
        demands = {leaf: {"sensitivity": 0.5, "l": l} for leaf, l in zip(LEAVES, TABLE_4, strict=True)}  # noqa: E741
        yield "table 4", {"model": "lc_anonymity", "l": 2, "c": 0.4, "values": demands}


def schema(model: dict[str, Any]) -> Schema:
    """Return a policy with k and one more model."""
    ill = {"role": "sensitive", "hierarchy": {"kind": "tree", "tree": TREE}, "guarding_node": "guard"}
    return Schema.of(
        Policy.model_validate(
            {
                "version": 1,
                "name": "skew",
                "secret": "for a benchmark alone, and long enough",
                "attributes": quasi() | {"ill": ill},
                "privacy": [{"model": "k_anonymity", "k": K}, {"attribute": "ill", **model}],
                "stream": {"max_delay": {"records": DELAY}, "max_buffer": 2 * DELAY + 2 * BATCH},
                "algorithm": {"name": "cail"},
            }
        )
    )


def made_up(of: Schema, share: np.ndarray, count: int, by_job: bool = False) -> Batch:
    """Return rows; a fifth of them guard the parent of their value."""
    rng, number = np.random.default_rng(1), np.arange(count)
    value = rng.choice(len(share), count, p=share).astype(np.int64)
    qi = quasi_identifiers(of, count, rng)
    if by_job:
        value[np.argsort(qi[:, 2] + rng.normal(0, 3, count), kind="stable")] = np.sort(value)
    tree = of.sensitive[0].hierarchy
    guard = np.where(rng.random(count) < 0.2, np.asarray(tree.parent)[value], NO_GUARD)  # type: ignore[union-attr]
    return Batch(
        qi=qi,
        sensitive=value[:, None],
        guard=guard[:, None].astype(np.int64),
        psf=np.zeros((count, 1), dtype=np.int64),
        subject=number,
        arrived=np.zeros(count),
        ref=np.stack([np.zeros(count, dtype=np.int64), number], axis=1),
        serial=np.full(count, UNNUMBERED),
        values=np.full((count, 1), "x", dtype=object),
    )


def measure(of: Schema, rows: Batch) -> dict[str, Any]:
    """Return speed, loss, lateness and the share published of one pass, compiled beforehand by a short one."""
    _pass(of, rows.take(slice(0, 3_000)))
    return _pass(of, rows)


def _pass(of: Schema, rows: Batch) -> dict[str, Any]:
    engine, spent, lost, left, late, groups = build(of), 0.0, 0.0, 0, 0, 0
    for first in range(0, len(rows) + BATCH, BATCH):
        part = rows.take(slice(first, first + BATCH))
        begin = time.process_time()
        outcome = engine.push(part, 0.0) if len(part) else engine.flush()
        spent += time.process_time() - begin
        for group in outcome.groups:
            late += int((min(first + BATCH, len(rows)) - BATCH - group.rows.serial > DELAY).sum())
            lost += group.loss * len(group)
            left += len(group)
            groups += 1
    return {
        "rows_per_cpu_second": round(len(rows) / spent),
        "published": round(left / len(rows), 4),
        "late": late,
        "ncp": round(lost / max(left, 1), 5),
        "group_size": round(left / max(groups, 1), 1),
    }


def table(rows: int, as_json: bool) -> None:
    """Measure every model under every skew and print it as it is done."""
    for (skew, top), by_job in product(SKEWS.items(), (False, True)):
        for name, model in models(shares(top)):
            of = schema(model)
            share = shares(top, 14) if name == "table 4" else shares(top)
            case = {"model": name, "skew": skew, "by_job": by_job} | measure(of, made_up(of, share, rows, by_job))
            print(json.dumps(case) if as_json else "  ".join(f"{value!s:>10}" for value in case.values()), flush=True)
