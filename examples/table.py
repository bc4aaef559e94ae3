"""Anonymize a table in memory, write it, and have it audited against the raw records."""

from __future__ import annotations

import tempfile
from pathlib import Path

from visits import policy, visits

import stream_anon

raw = visits(1_000)
result = stream_anon.anonymize(raw, policy(), algorithm="sweep")
print(f"{result.published} published in {len(result.groups)} groups, {result.suppressed} suppressed")
print(f"information lost: {result.loss:.1%}", {name: f"{loss:.1%}" for name, loss in result.losses.items()})

with tempfile.TemporaryDirectory() as folder:
    out = Path(folder) / "visits.csv"
    result.write(out)
    report = stream_anon.audit(out, policy(), raw=raw)
print("audit:", "passed" if report.passed else report.findings)
assert report.passed
