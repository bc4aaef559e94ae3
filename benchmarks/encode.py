"""How fast JSON records become a `Batch`: rows per CPU second and the peak of memory, for 7 quasi-identifiers."""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
from adult import QUASI, Table, table

from stream_anon.core.encode import Encoder

BATCH = 1_000
"""Records per call: what one poll of a busy topic returns."""

REPEATS = 3
ENOUGH = 1.0
"""CPU seconds per measurement; less is noise."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and hierarchies/; a synthetic table without")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.add_argument("--seconds", type=float, default=ENOUGH, help="of processor time for each measurement")
    arguments = parser.parse_args()
    found = measure(table(arguments.data), arguments.seconds)
    if arguments.json:
        print(json.dumps(found))
    else:
        print(f"{found['table']}: {found['rows']:,} rows of {len(QUASI)} quasi-identifiers, batches of {BATCH:,}")
        print(f"{found['rows_per_cpu_second']:,} rows per CPU second (decoding alone: {found['decode_only']:,})")
        print(f"{found['peak_mb']} MB at the peak, of which {found['start_mb']} MB before encoding")


def measure(source: Table, enough: float = ENOUGH) -> dict[str, str | int | float]:
    """Return the best of three runs over the table, repeated until each takes `enough` seconds."""
    payloads = source.payloads()
    start = _peak_mb()
    encoder = Encoder(source.schema)
    _run(encoder, payloads[:BATCH], 1)  # what the first call builds is not measured
    best, rows = 0.0, 0
    for _ in range(REPEATS):
        done, spent = _run(encoder, payloads, enough)
        best, rows = max(best, done / spent), rows + done
    return {
        "table": source.name,
        "rows": rows,
        "rows_per_cpu_second": round(best),
        "peak_mb": _peak_mb(),
        "start_mb": start,
        "decode_only": round(_decode_only(payloads)),
    }


def _run(encoder: Encoder, payloads: list[bytes], enough: float) -> tuple[int, float]:
    """Encode all payloads again and again; rows and CPU seconds."""
    rows, begin = 0, time.process_time()
    while True:
        for first in range(0, len(payloads), BATCH):
            part = payloads[first : first + BATCH]
            ref = np.stack([np.zeros(len(part), np.int64), np.arange(first, first + len(part))], axis=1)
            encoded = encoder.encode(part, ref, np.full(len(part), 0.0))
            if encoded.rejections:
                sys.exit(f"{len(encoded.rejections)} records were rejected: {encoded.rejections[0]}")
            rows += len(encoded.batch)
        spent = time.process_time() - begin
        if spent >= enough:
            return rows, spent


def _decode_only(payloads: list[bytes]) -> float:
    """Return the same records read into plain dictionaries and nothing else, for comparison."""
    decode = msgspec.json.Decoder().decode
    begin = time.process_time()
    for payload in payloads:
        decode(payload)
    return len(payloads) / (time.process_time() - begin)


def _peak_mb() -> float:
    """Return the largest amount of memory this process ever had; Linux counts in KiB, macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


if __name__ == "__main__":
    main()
