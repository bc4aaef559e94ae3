"""Anonymize a stream: records arrive over time, groups leave before their oldest record is five seconds old."""

from __future__ import annotations

from visits import policy, visits

import stream_anon

anonymizer = stream_anon.Anonymizer(policy(), on_reject=lambda rejection: print("rejected:", rejection))
published, clock = 0, 0.0
for visit in [*visits(500), {"patient": "P1", "age": "unknown"}]:
    clock += 0.01  # a hundred records a second; a real program passes time.monotonic()
    for group in anonymizer.feed([visit], now=clock):
        published += len(group)
while (deadline := anonymizer.next_deadline) is not None and deadline <= clock + 5:
    for group in anonymizer.tick(now=deadline):  # the input is idle: deadlines fire all the same
        published += len(group)
    if anonymizer.next_deadline == deadline:
        break
published += sum(len(group) for group in anonymizer.finish(now=clock + 5))
counts = anonymizer.counts
print(
    f"{counts['consumed']} in, {published} published, {counts['suppressed']} suppressed, {counts['rejected']} rejected"
)
assert counts["consumed"] == published + counts["suppressed"] + sum(counts["rejected"].values())
