"""Where ledgers are kept: as text beside an offset, or in records of a ledger topic to which such a text points.

What lies beside the offset is the authority: it is committed in one transaction with the output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from stream_anon.kafka.transport import Committed
from stream_anon.worker.ledger.budget import INLINE, LedgerBudget
from stream_anon.worker.ledger.codec import Codec, LedgerError
from stream_anon.worker.ledger.ledger import Ledger, Place
from stream_anon.worker.ledger.pointer import POINTS


class Found(NamedTuple):
    """A ledger as it was kept, and how many characters its text has."""

    ledger: Ledger
    size: int


class LedgerStore(Protocol):
    """A place for ledgers; `codec` makes their texts, `budget` knows how long these may be."""

    codec: Codec
    budget: LedgerBudget

    def keep(self, texts: Mapping[Place, Committed]) -> dict[int, Committed]:
        """Keep the texts of ledgers, as part of the open transaction; return by partition what to commit with it."""

    def find(self, committed: Mapping[Place, Committed]) -> dict[Place, Found | LedgerError]:
        """Return the ledgers behind what is committed, each proved to be what was kept, or why there is none."""

    def followed(self, committed: Mapping[Place, Committed | None]) -> set[int]:
        """Return the partitions of which a later ledger was kept than the one that is committed.

        Raises `AbortableError` as long as nobody can say.
        """

    def lacking(self, partitions: int) -> set[int]:
        """Return which of so many partitions this store has no place for."""

    def check(self, partitions: int) -> None:
        """Raise `StreamAnonError` if ledgers of so many partitions cannot be kept here."""

    def keep_aside(self, texts: Mapping[Place, Committed]) -> dict[int, Committed]:
        """Keep texts outside any consumer group, in a transaction of their own, and return what to commit.

        Until that is done they count for nothing: whoever does it may fail half-way.
        """


class InlineStore:
    """Ledgers as the text beside an offset: no topic of their own, and room for some thousand rows."""

    budget = INLINE

    def __init__(self, codec: Codec) -> None:
        self.codec = codec

    def keep(self, texts: Mapping[Place, Committed]) -> dict[int, Committed]:
        """Return the texts themselves."""
        return {place.partition: text for place, text in texts.items()}

    keep_aside = keep

    def find(self, committed: Mapping[Place, Committed]) -> dict[Place, Found | LedgerError]:
        """Decode the texts, each by itself."""
        return {place: decoded(self.codec, text, place) for place, text in committed.items()}

    def followed(self, committed: Mapping[Place, Committed | None]) -> set[int]:
        """Return none: nothing else is kept here."""
        return set()

    def lacking(self, partitions: int) -> set[int]:
        """Return none: wherever an offset is, there is room beside it."""
        return set()

    def check(self, partitions: int) -> None:
        """Do nothing: brokers keep a text with every offset."""


def decoded(codec: Codec, text: Committed, place: Place) -> Found | LedgerError:
    """Decode the text of a ledger, or return why it is none."""
    if text.metadata.startswith(POINTS):
        return LedgerError("elsewhere", "the ledger is kept in a ledger topic, and the policy names none")
    try:
        return Found(codec.decode(text, place), len(text.metadata))
    except LedgerError as error:
        return error
