"""A gate for a pipeline: audit what is about to be shared, and exit with 1 unless every promise was kept."""

from __future__ import annotations

import sys

from visits import policy, visits

import stream_anon

raw = visits(400)
shared = stream_anon.anonymize(raw, policy()).table
report = stream_anon.audit(shared, policy(), raw=raw)
for check in report.checks:
    print("kept  " if check.kept else "BROKEN", check.promise)
leaky = [record | {"diagnosis": "flu"} for record in shared]
assert not stream_anon.audit(leaky, policy()).passed, "a homogeneous table must not pass"
sys.exit(0 if report.passed else 1)
