"""The demo's own auditor: it sees what goes in and what comes out, and nothing of what happens between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stream_anon.core.privacy.l_diversity import LDiversitySettings
from stream_anon.core.record_template import ENVELOPE
from stream_anon.core.schema import Schema

Record = dict[str, Any]
IN_TIME = "within the delay bound"
"""The one promise that a busy machine can break."""


@dataclass(frozen=True, slots=True)
class Check:
    """One promise, and whether it was kept."""

    name: str
    ok: bool
    found: str


class Witness:
    """An auditor that remembers each record until it is published, then compares the two.

    It believes nothing the engine says of itself: people are counted by the identifiers of the originals, values and
    ranges are read from the published lines.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._names = {column.name for column in schema.quasi} | set(schema.published)
        identifiers = (name for name, a in schema.policy.attributes.items() if a.role == "identifier")
        self._hidden = [name for name in identifiers if name not in schema.published]
        self._diverse = {m.attribute: m.l for m in schema.policy.privacy if isinstance(m, LDiversitySettings)}
        self._inside: dict[int, tuple[bytes, float]] = {}
        self.received = 0
        self.published = 0
        self.groups = 0
        self.longest = 0.0
        self.fewest_people = 0
        self.fewest_values = dict.fromkeys(self._diverse, 0)
        self._strangers = 0  # published, but not waiting: a record that leaves twice
        self._split = 0  # groups that do not look the same from within
        self._untrue = 0  # records whose published ranges do not hold their values
        self._leaks = 0

    def arrive(self, records: Sequence[tuple[int, bytes]], now: float) -> None:
        """Remember records that go in."""
        self.received += len(records)
        self._inside.update({number: (payload, now) for number, payload in records})

    def leave(self, numbers: Sequence[int], lines: Sequence[bytes], now: float) -> tuple[list[Record], list[Record]]:
        """Compare the lines of a group with the records of these numbers, and return both, parsed."""
        before: list[Record] = []
        after: list[Record] = [msgspec.json.decode(line) for line in lines]
        for number in numbers:
            payload, arrived = self._inside.pop(number, (None, now))
            self._strangers += payload is None
            before.append(msgspec.json.decode(payload) if payload else {})
            self.longest = max(self.longest, now - arrived)
        self.groups += 1
        self.published += len(lines)
        self._count(before, after)
        self._leaks += sum(self._leaking(old, new) for old, new in zip(before, after, strict=True))
        self._split += not self._alike(after)
        self._untrue += sum(not self._covers(old, new) for old, new in zip(before, after, strict=True))
        return before, after

    def _count(self, before: list[Record], after: list[Record]) -> None:
        subject = self._schema.subject
        people = len({record.get(subject) for record in before}) if subject else len(before)
        self.fewest_people = min(self.fewest_people or people, people)
        for name, fewest in self.fewest_values.items():
            values = len({record.get(name) for record in after})
            self.fewest_values[name] = min(fewest or values, values)

    def _alike(self, after: list[Record]) -> bool:
        boxes = [[record.get(column.name) for column in self._schema.quasi] for record in after]
        marks = [(record[ENVELOPE]["group"], record[ENVELOPE]["size"]) for record in after]
        return all(box == boxes[0] for box in boxes) and set(marks) == {(marks[0][0], len(after))}

    def _leaking(self, old: Record, new: Record) -> bool:
        published = {str(value) for value in new.values()}
        return not new.keys() <= self._names | {ENVELOPE} or any(
            str(old[n]) in published for n in self._hidden if n in old
        )

    def _covers(self, old: Record, new: Record) -> bool:
        return all(c.hierarchy.contains(new.get(c.name), old.get(c.name)) for c in self._schema.quasi)

    @property
    def unchecked(self) -> list[str]:
        """Models of the policy that only the gate has judged; of l-diversity this witness counts different values."""
        known = ("k_anonymity", "l_diversity")
        return sorted({model.model for model in self._schema.policy.privacy if model.model not in known})

    def checks(self, withheld: int) -> Iterator[Check]:
        """Return the verdict at the end; `withheld` is how many records are said to have stayed unpublished."""
        k = self._schema.requirements.k
        once = self.received == self.published + withheld and len(self._inside) == withheld and not self._strangers
        yield Check("every record once", once, f"{self.received:,} in, {self.published:,} out, {withheld:,} withheld")
        who = self._schema.counts
        yield Check(
            f"at least {k} {who} in a group",
            self.fewest_people >= k,
            f"smallest of {self.groups:,}: {self.fewest_people}",
        )
        for name, l in self._diverse.items():  # noqa: E741 - the literature's name
            fewest = self.fewest_values[name]
            yield Check(f"at least {l} values of {name}", fewest >= l, f"fewest in a group: {fewest}")
        yield Check("all alike within a group", not self._split, f"groups that differ within: {self._split:,}")
        yield Check("ranges hold their values", not self._untrue, f"records that do not fit: {self._untrue:,}")
        yield Check("no identifier, no undeclared field", not self._leaks, f"records that have one: {self._leaks:,}")
        bound = self._schema.policy.stream.max_delay.time
        if bound is not None:
            yield Check(IN_TIME, self.longest <= bound, f"longest {self.longest:.2f} s of {bound:g} s")
