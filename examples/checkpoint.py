"""Export the records that wait, and take them up again: what a checkpoint of a stream framework does."""

from __future__ import annotations

from visits import policy, visits

import stream_anon

records = visits(600)
first = stream_anon.Anonymizer(policy())
published = sum(len(group) for group in first.feed(records[:400], now=0.0))
state = first.waiting()  # holds values: encrypt it, and store it in one transaction with the position of the input
print(f"{published} published, {len(first)} wait, exported as {len(state):,} bytes")

second = stream_anon.Anonymizer.restore(policy(), state)
published += sum(len(group) for group in second.feed(records[400:], now=1.0))
published += sum(len(group) for group in second.finish(now=2.0))
print(f"{published} published in all")
assert published + second.counts["suppressed"] == 600
