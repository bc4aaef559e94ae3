"""A long stream at level memory and level cost: rows per CPU second and memory in use after each tenth of it.

python benchmarks/soak.py --rows 5000000 --json
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from adult import source
from msgspec.structs import replace

from stream_anon.core.encode import Encoder
from stream_anon.core.privacy.k_anonymity import KAnonymitySettings
from stream_anon.policy.settings import CailSettings, MaxDelay, StreamSettings
from stream_anon.stream import build

BATCH = 500


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--delay", type=int, default=1000)
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    arguments = parser.parse_args()
    found = soak(arguments.rows, arguments.k, arguments.delay)
    if arguments.json:
        print(json.dumps(found))
    else:
        print(f"{found['rows']:,} rows, {found['published']:,} published, {found['suppressed']:,} suppressed")
        for tenth, (speed, memory) in enumerate(zip(found["rows_per_cpu_second"], found["mb"], strict=True), start=1):
            print(f"{tenth:>3}/10  {speed:>10,} rows per CPU second  {memory:>8,} MB")
    if found["published"] + found["suppressed"] != found["rows"]:
        sys.exit("rows are missing")


def soak(rows: int, k: int, delay: int) -> dict[str, int | list[int] | list[float]]:
    """Synthetic rows in batches, over and over under ever new numbers."""
    with source(None, limit=100_000) as table:
        schema = table.schema(
            privacy=[KAnonymitySettings(model="k_anonymity", k=k)],
            stream=StreamSettings(max_delay=MaxDelay(records=delay)),
            algorithm=CailSettings(name="cail"),
        )
        ref = np.zeros((len(table.rows), 2), dtype=np.int64)
        ref[:, 1] = np.arange(len(table.rows))
        stock = Encoder(schema).encode(table.rows, ref, np.zeros(len(table.rows))).batch
    engine = build(schema)
    published = suppressed = done = 0
    speeds, memory = [], []
    begin, since = time.process_time(), 0
    while done < rows:
        first = done % (len(stock) - BATCH)
        part = stock.take(slice(first, first + min(BATCH, rows - done)))
        number = np.arange(done, done + len(part), dtype=np.int64)
        part = replace(part, ref=np.stack([number % 8, number], axis=1), subject=number)
        outcome = engine.push(part, 0.0)
        published += sum(len(group.rows) for group in outcome.groups)
        suppressed += 0 if outcome.suppressed is None else len(outcome.suppressed)
        done += len(part)
        if done * 10 // rows > len(speeds):
            now = time.process_time()
            speeds.append(round((done - since) / (now - begin)))
            gc.collect()
            memory.append(_resident_mb())
            begin, since = time.process_time(), done
    outcome = engine.flush()
    published += sum(len(group.rows) for group in outcome.groups)
    suppressed += 0 if outcome.suppressed is None else len(outcome.suppressed)
    found = {"rows": rows, "published": published, "suppressed": suppressed}
    return found | {"rows_per_cpu_second": speeds, "mb": memory}


def _resident_mb() -> float:
    """Memory in use now, where the system tells it."""
    status = Path("/proc/self/statm")
    pages = int(status.read_text(encoding="ascii").split()[1]) if status.exists() else 0
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


if __name__ == "__main__":
    main()
