"""How fast a published file of 7 quasi-identifiers is audited: records per CPU second, and the peak of memory."""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from stream_anon.auditor.auditor import audit_file
from stream_anon.auditor.policy import read_rules

POLICY = """
version: 1
name: bench
subject: who
attributes:
  who: {role: identifier}
  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 99], snap: [5, 10, 20]}}
  zip: {role: quasi_identifier, type: category, hierarchy: {kind: prefix, length: 5}}
  sex: {role: quasi_identifier, type: category, hierarchy: {kind: flat, values: [f, m]}}
  hours: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 99], snap: [10]}}
  born: {role: quasi_identifier, type: category, hierarchy: {kind: prefix, length: 2}}
  race: {role: quasi_identifier, type: category, hierarchy: {kind: flat, values: [a, b, c, d]}}
  school: {role: quasi_identifier, type: category, hierarchy: {kind: prefix, length: 3}}
  ill: {role: sensitive}
  ward: {role: insensitive}
privacy:
  - {model: k_anonymity, k: 5}
  - {model: l_diversity, attribute: ill, l: 3}
  - {model: lc_anonymity, attribute: ill, l: 2, c: 0.7}
"""
ILLNESSES = ["flu", "cough", "asthma", "ulcer", "gastritis", "colitis"]
BLOCK = 20_000
"""Groups made at once."""


def main() -> None:
    """Make a file, audit it, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--shuffled", action="store_true", help="records in any order, not group by group")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        policy, out = Path(folder) / "policy.yaml", Path(folder) / "out.jsonl"
        policy.write_text(POLICY, encoding="utf-8")
        made = write(out, arguments.records, arguments.shuffled)
        found = measure(out, policy) | {"shuffled": arguments.shuffled, "megabytes": out.stat().st_size >> 20}
        if found["records"] != made or not found["passed"]:
            sys.exit(f"the audit saw {found['records']} of {made} records, passed: {found['passed']}")
    if arguments.json:
        print(json.dumps(found))
    else:
        print(f"{found['records']:,} records in {found['groups']:,} groups, {found['megabytes']:,} MB")
        print(f"{found['records_per_cpu_second']:,} records per CPU second; peak {found['peak_mb']} MB")


def measure(out: Path, policy: Path) -> dict[str, object]:
    """One audit, from opening the file to the verdict."""
    rules, before, begin = read_rules(policy), _peak_mb(), time.process_time()
    result = audit_file(out, rules)
    spent = time.process_time() - begin
    return {
        "records": result.records,
        "groups": result.groups,
        "passed": result.passed,
        "records_per_cpu_second": round(result.records / spent),
        "cpu_seconds": round(spent, 2),
        "start_mb": before,
        "peak_mb": _peak_mb(),
    }


def write(path: Path, count: int, shuffled: bool) -> int:
    """Write records as an anonymizer does; each block of a shuffled file holds a part of distant groups."""
    made = 0
    with path.open("wb") as file:
        if not shuffled:
            for lines in blocks(count):
                file.write(b"".join(lines))
                made += len(lines)
            return made
        heaps: list[Path] = [path.with_suffix(f".{i}") for i in range(64)]
        rng = np.random.default_rng(2)
        files = [heap.open("wb") for heap in heaps]
        for lines in blocks(count):
            for line, heap in zip(lines, rng.integers(0, len(heaps), len(lines)).tolist(), strict=True):
                files[heap].write(line)
            made += len(lines)
        for heap, opened in zip(heaps, files, strict=True):
            opened.close()
            lines = heap.read_bytes().splitlines(keepends=True)
            rng.shuffle(lines)
            file.write(b"".join(lines))
            heap.unlink()
    return made


def blocks(count: int) -> Iterator[list[bytes]]:
    """Lines of whole groups of 5 to 9 records."""
    rng, made = np.random.default_rng(1), 0
    while made < count:
        lines: list[bytes] = []
        sizes = rng.integers(5, 10, BLOCK).tolist()
        numbers = rng.integers(0, 10, (BLOCK, 12)).tolist()
        values = np.tile(rng.permuted(np.tile(np.arange(len(ILLNESSES)), (BLOCK, 1)), axis=1), (1, 2)).tolist()
        ids = rng.bytes(8 * BLOCK).hex()
        for g, (size, digits, ill) in enumerate(zip(sizes, numbers, values, strict=True)):
            group = ids[16 * g : 16 * g + 16]
            if made + len(lines) >= count:
                break
            head = msgspec.json.encode(
                {
                    "age": [digits[0] * 10, digits[0] * 10 + 9],
                    "zip": f"{digits[1]}{digits[2]}{digits[3]}{digits[4]}*",
                    "sex": "fm*"[digits[5] % 3],
                    "hours": [digits[6] * 10, digits[6] * 10 + 9],
                    "born": f"{digits[7]}*",
                    "race": "abcd*"[digits[8] % 5],
                    "school": f"{digits[9]}{digits[10]}*",
                }
            )[:-1]
            stars = (digits[5] % 3 == 2) + (digits[8] % 5 == 4)
            loss = round((9 / 99 + 9 / 99 + 0.2 + 0.5 + 1 / 3 + stars) / 7, 4)
            shared = b'"size":%d,"subjects":%d,"loss":%s}}\n' % (size, size, str(loss).encode())
            mark = b'"_anon":{"policy":"bench@0a1b2c","group":"%s"' % group.encode()
            for row in range(size):
                own = ILLNESSES[ill[row]].encode()
                lines.append(b'%s,"ill":"%s","ward":"%c",%s,"row":%d,%s' % (head, own, 65 + row % 3, mark, row, shared))
        made += len(lines)
        yield lines


def _peak_mb() -> float:
    """Return the largest amount of memory this process ever had; Linux counts in KiB, macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


if __name__ == "__main__":
    main()
