"""Show typical records before and after anonymization: the one place where values of records are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stream_anon.core.decode import Payload
from stream_anon.core.gate import Group
from stream_anon.formats.tables import Part, flat

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """One raw record and its published form, fields by dotted path."""

    before: Record
    after: Record


def typical(groups: Sequence[Group]) -> Group:
    """Return the group with the median loss."""
    return sorted(groups, key=lambda group: (group.loss, group.id))[len(groups) // 2]


def pairs(group: Group, parts: Iterable[Part], count: int) -> list[Pair]:
    """Return the first `count` records of a group, looked up in the table they came from."""
    numbers = group.rows.ref[:count, 1].tolist()
    found: dict[int, Record] = {}
    for part in parts:
        for number in numbers:
            if part.first <= number < part.first + len(part):
                found[number] = _record(part.payloads[number - part.first])
        if len(found) == len(numbers):
            break
    records = [flat(record) for record in group.records()][: len(numbers)]
    return [Pair(found[number], record) for number, record in zip(numbers, records, strict=True)]


def _record(payload: Payload) -> Record:
    if isinstance(payload, dict):
        return {name: cell for name, cell in flat(payload).items() if cell != ""}
    return flat(msgspec.json.decode(payload)) if isinstance(payload, bytes) else {}
