"""Loss, delay, speed and memory of the stream algorithms on one table, in one run, so that they can be compared.

Loss is NCP per cell, a suppressed row counting 1; delays are counted in later arrivals. Rows come in a seeded order.
Speed and memory are measured on batches, delays row by row: the groups are the same. Kernels are compiled beforehand.
A policy that is given is measured as it is: its privacy models, bound and algorithm, but for what the options replace.

    python benchmarks/stream.py --data DIR --json > stream.jsonl
    python benchmarks/stream.py --algorithm cail fads --k 10 --delay 1000
    python benchmarks/stream.py --algorithm cail --cail patience=0.2 memory=50
    python benchmarks/stream.py --policy policy.yaml rows.csv
    python benchmarks/stream.py --skew --json        # every privacy model on even and skewed values (skew.py)
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import multiprocessing
import resource
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import skew
from adult import SENSITIVE, Source, source
from pydantic import SecretStr
from ruamel.yaml import YAML

from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoder
from stream_anon.core.privacy.l_diversity import LDiversitySettings
from stream_anon.core.schema import Schema
from stream_anon.policy import load
from stream_anon.policy.settings import (
    CailSettings,
    CastleSettings,
    FadsSettings,
    MaxDelay,
    StreamAlgorithmSettings,
)
from stream_anon.stream import Outcome, build

ALGORITHMS: dict[str, StreamAlgorithmSettings] = {
    "cail": CailSettings(name="cail"),
    "castle": CastleSettings(name="castle"),
    "fads": FadsSettings(name="fads"),
    "standing": CailSettings(name="cail", clusters="standing"),
}
ROWS = 30_162
"""The complete rows of Adult's training file: what the literature compares on."""

BATCH = 1_000
"""Rows per call: what one poll of a busy topic returns."""

PASSES, SECONDS = 3, 4.0
"""The fastest of so many passes, and of as many more as fit into these seconds (or --seconds), counts: on a shared
machine the others measure the neighbours."""

HEADS = ("algorithm", "k", "l", "delay", "ncp", "delay_mean", "delay_p99", "delay_max", "suppressed")
SPEED = ("rows_per_cpu_second", "peak_mb")


def main() -> None:
    """Measure every case and print it as it is done."""
    arguments = _arguments()
    if arguments.skew:
        skew.table(min(arguments.rows, 20_000), arguments.json)
        return
    if not arguments.json:
        print(" ".join(f"{head:>12}" for head in (*HEADS, *SPEED)))
    with _source(arguments) as table:
        rows = _encode(table, arguments.seed)
        for algorithm in arguments.algorithm:
            for delay in (100, 400):  # few and many rows within the bound take different ways: compile both
                compiled = _schema(table, algorithm, arguments.k[0] and 5, arguments.l[0] and 1, delay)
                deque(_outcomes(compiled, rows.take(slice(0, 900)), 300), maxlen=0)
        gc.collect()
        gc.freeze()  # as commands do once their kernels are there
        for delay in arguments.delay:
            for l in arguments.l:  # noqa: E741 - the literature's name
                for k in arguments.k:
                    for algorithm in arguments.algorithm:
                        schema = _schema(table, algorithm, k, l, delay)
                        case = {"algorithm": schema.policy.algorithm.name if algorithm is None else algorithm}
                        case |= {"k": schema.requirements.k, "l": l, "delay": delay or _bound(table)}
                        case |= {
                            "privacy": [model.model_dump(exclude_defaults=True) for model in schema.policy.privacy]
                        }
                        case |= _measure(schema, rows, arguments.seconds)
                        _print(case | {"seed": arguments.seed, "table": table.name}, arguments.json)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and hierarchies/; a synthetic table without")
    parser.add_argument("--policy", nargs=2, type=Path, metavar=("FILE", "DATA"), help="another policy, and a CSV file")
    parser.add_argument("--json", action="store_true", help="one line of JSON per case")
    parser.add_argument("--algorithm", nargs="+", choices=ALGORITHMS, help="all but standing, or the policy's own")
    parser.add_argument("--k", nargs="+", type=int, help="5, 10 and 50, or the policy's own")
    parser.add_argument(
        "--l",
        nargs="+",
        type=int,
        help="different values of the sensitive attribute, 1 for none; 1 and 3, or the policy's own models",
    )
    parser.add_argument("--delay", nargs="+", type=int, help="later arrivals; 500, 1000 and 5000, or the policy's own")
    parser.add_argument("--seed", type=int, default=1, help="of the order in which rows arrive")
    parser.add_argument(
        "--cail", nargs="+", default=[], metavar="KEY=VALUE", help="other settings of cail, as in a policy"
    )
    parser.add_argument("--skew", action="store_true", help="the table of models and skews, and nothing else")
    parser.add_argument("--rows", type=int, default=ROWS, help="how many rows of the table")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of processor time at least for each case")
    arguments = parser.parse_args()
    usual = {"algorithm": ["cail", "castle", "fads"], "k": [5, 10, 50], "l": [1, 3], "delay": [500, 1000, 5000]}
    for name, values in usual.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, values if arguments.policy is None else [None])
    if arguments.cail:
        changes = {key: YAML(typ="safe").load(value) for key, value in (pair.split("=", 1) for pair in arguments.cail)}
        ALGORITHMS["cail"] = CailSettings(name="cail", **changes)
    return arguments


@contextmanager
def _source(arguments: argparse.Namespace) -> Iterator[Source]:
    if arguments.policy is None:
        with source(arguments.data, limit=arguments.rows) as found:
            yield found
        return
    policy, data = arguments.policy
    with data.open(encoding="utf-8", newline="") as file:
        rows: list[Any] = list(csv.DictReader(file))
    loaded = load(policy)
    secret = loaded.policy.secret or SecretStr("one for all cases, for values are encoded once")
    loaded = replace(loaded, policy=loaded.policy.model_copy(update={"secret": secret}))
    yield Source(data.stem, rows[: arguments.rows], loaded)


def _schema(table: Source, algorithm: str | None, k: int | None, l: int | None, delay: int | None) -> Schema:  # noqa: E741
    """Return the policy of a case; None leaves what the policy says. An `l` takes the place of all models but k's."""
    policy = table.loaded.policy
    privacy = list(policy.privacy)
    if l is not None:
        sensitive = next(iter(policy.sensitive), SENSITIVE)
        privacy = [model for model in privacy if model.people]
        privacy += [LDiversitySettings(model="l_diversity", attribute=sensitive, l=l)] if l > 1 else []
    if k is not None:
        privacy = [model.with_people(k) for model in privacy]
    records = _bound(table) if delay is None else delay
    stream = policy.stream.model_copy(
        update={"max_delay": MaxDelay(records=records), "max_buffer": 2 * records + 2 * BATCH}
    )
    return table.schema(
        privacy=privacy, stream=stream, algorithm=policy.algorithm if algorithm is None else ALGORITHMS[algorithm]
    )


def _bound(table: Source) -> int:
    """Return the policy's own bound; delays are counted in arrivals here, whatever clock the policy has beside."""
    records = table.loaded.policy.stream.max_delay.records
    if records is None:
        sys.exit("the policy has no bound in records: say --delay N, for delays are counted in arrivals here")
    return records


def _encode(table: Source, seed: int) -> Batch:
    order = np.random.default_rng(seed).permutation(len(table.rows))
    ref = np.stack([np.zeros(len(order), np.int64), np.arange(len(order))], axis=1)
    encoded = Encoder(table.schema()).encode([table.rows[i] for i in order], ref, np.zeros(len(order)))
    if encoded.rejections:
        sys.exit(f"{len(encoded.rejections)} rows do not fit the policy, the first: {encoded.rejections[0]}")
    return encoded.batch


def _outcomes(schema: Schema, rows: Batch, size: int) -> Iterator[tuple[int, Outcome]]:
    """One pass in batches of `size`: after each, the number of the row that arrived last, and what left."""
    engine = build(schema)
    for first in range(0, len(rows), size):
        yield min(first + size, len(rows)) - 1, engine.push(rows.take(slice(first, first + size)), 0.0)
    yield len(rows) - 1, engine.flush()


def _measure(schema: Schema, rows: Batch, seconds: float) -> dict[str, Any]:
    """One case, in a process of its own so that its memory is its own."""
    context = multiprocessing.get_context("fork")  # the child has the compiled kernels and the rows already
    answer = context.SimpleQueue()
    child = context.Process(target=lambda: answer.put(_measure_here(schema, rows, seconds)))
    child.start()
    child.join()
    if child.exitcode:
        sys.exit("a case failed, see above")
    found: dict[str, Any] = answer.get()
    return found


def _measure_here(schema: Schema, rows: Batch, seconds: float) -> dict[str, Any]:
    passes: list[float] = []
    while len(passes) < PASSES or sum(passes) < seconds:
        passes.append(_cpu_seconds(schema, rows))
    spent = min(passes)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    waits: list[np.ndarray] = []
    lost = suppressed = 0.0
    for latest, outcome in _outcomes(schema, rows, 1):
        for group in outcome.groups:
            waits.append(latest - group.rows.serial)
            lost += float(group.losses.mean()) * len(group.rows)
        suppressed += 0 if outcome.suppressed is None else len(outcome.suppressed)
    lost += suppressed
    delays = np.concatenate(waits or [np.zeros(0)])
    return {
        "ncp": round(lost / len(rows), 5),
        "delay_mean": round(float(delays.mean()), 1) if len(delays) else None,
        "delay_p99": round(float(np.quantile(delays, 0.99)), 1) if len(delays) else None,
        "delay_max": int(delays.max()) if len(delays) else None,
        "suppressed": int(suppressed),
        "rows_per_cpu_second": round(len(rows) / spent),
        "peak_mb": round(peak, 1),
    }


def _cpu_seconds(schema: Schema, rows: Batch) -> float:
    begin = time.process_time()
    deque(_outcomes(schema, rows, BATCH), maxlen=0)
    return time.process_time() - begin


def _print(case: dict[str, Any], as_json: bool) -> None:
    line = json.dumps(case) if as_json else " ".join(f"{case[head]!s:>12}" for head in (*HEADS, *SPEED))
    print(line, flush=True)


if __name__ == "__main__":
    main()
