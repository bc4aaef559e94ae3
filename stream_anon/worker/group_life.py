"""A group's life in the worker: formed, then announced, then published. Each state is a type of its own.

Only a ledger makes an `Announced` of a `Formed`, and only an `Announced` can be published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Floats
from stream_anon.errors import PrivacyViolation
from stream_anon.worker.ledger.codec import combined
from stream_anon.worker.ledger.ledger import Ledger, Members

_SEAL = object()


class GroupFacts(msgspec.Struct, frozen=True, eq=False, gc=False):
    """What is told of a group when it is published; no value of a record.

    `arrived` is when each row was received, `oldest` the first of these times; `born` are the records' own times, NaN
    where unknown. `raised` is how many sensitive values are published as an ancestor, by attribute.
    """

    reason: str
    arrived: Floats
    oldest: float
    born: Floats
    losses: Floats
    raised: Mapping[str, int]


class Formed(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A group with its bytes fixed, which nobody has heard of: it may still be dissolved."""

    group: Group
    members: Members
    records: list[bytes]
    digest: int
    facts: GroupFacts

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        return f"<Formed of {len(self)} rows>"


class Announced:
    """A group that a ledger names: it is published exactly as it is, by this worker or by whoever takes over."""

    __slots__ = ("facts", "id", "members", "records")

    def __init__(self, formed: Formed, seal: object) -> None:
        if seal is not _SEAL:
            raise PrivacyViolation("a group was taken for announced without a ledger")
        self.id: str = formed.group.id
        self.members, self.records, self.facts = formed.members, formed.records, formed.facts

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        return f"<Announced of {len(self)} rows>"

    def publish(self) -> Published:
        """Return what is left of the group once a transaction has made its records visible."""
        return Published(self.facts)


class Published(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A group that readers can see. Its bytes are let go; what is left is to be told."""

    facts: GroupFacts

    def __repr__(self) -> str:
        return f"<Published of {len(self.facts.arrived)} rows>"


def announce(groups: Sequence[Formed], ledger: Ledger) -> list[Announced]:
    """Return groups as announced by a committed ledger; raise unless it names exactly them and their bytes."""
    named = [group.members for group in groups]
    same = len(named) == len(ledger.announced) and all(map(_same, named, ledger.announced))
    if not same or combined([group.digest for group in groups]) != ledger.digest:
        raise PrivacyViolation("groups were taken for announced that their ledger does not name")
    return [Announced(group, _SEAL) for group in groups]


def _same(one: Members, other: Members) -> bool:
    return one is other or np.array_equal(one, other)
