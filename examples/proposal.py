"""Let the program propose a policy for a table, with a reason per column."""

from __future__ import annotations

from visits import visits

import stream_anon

proposed = stream_anon.propose(visits(2_000), name="visits")
for column in proposed.columns:
    print(f"{column.column.name:<10} {column.role:<17} {column.reason}{'  <- decide' if column.decide else ''}")
print(proposed.text.splitlines()[0])
assert any(column.role == "quasi_identifier" for column in proposed.columns)
