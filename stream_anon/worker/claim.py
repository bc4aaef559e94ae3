"""A claim on the output topic: one group under one policy publishes into it, and whoever comes second is refused.

Two outputs of the same records in one topic, or two groups that begin on one topic, would show rows in two groups. The
claim lies beside an offset of the output in a consumer group of a reserved name, which every worker knows. A broker
forgets the offsets of a group that nobody joins, by default after a week: where ledgers have a topic, the claim is a
record of it as well, written in the same transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

import msgspec

from stream_anon.errors import StreamAnonError
from stream_anon.kafka.transport import (
    AbortableError,
    Committed,
    FencedError,
    Membership,
    OutcomeUnknownError,
    Placed,
    Transport,
    TransportError,
)

HOME = 0
"""The partition of the output beside whose offset the claim is stored."""

_RESERVED = "stream-anon-output-"
_PATIENCE = 60.0  # seconds to wait for another worker that claims at the same moment
_TRIES = 5


class Claim(msgspec.Struct, frozen=True):
    """Who publishes into an output: the consumer group, the policy's fingerprint, and the input it reads.

    `topic_id` is that of the output: a claim on a topic that was made anew is void.
    """

    group: str
    policy: str
    input: str
    topic_id: str

    def __str__(self) -> str:
        return f"group {self.group} with policy {self.policy}, from {self.input}"

    def text(self) -> str:
        """Return the claim as it is written beside an offset, and into a ledger topic."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def of(cls, text: str) -> Claim | None:
        """Parse a claim; None if the text is empty. Raise if something else wrote it."""
        try:
            return msgspec.json.decode(text, type=cls) if text else None
        except msgspec.DecodeError:
            raise StreamAnonError(
                "the claim on the output cannot be read: another program or version wrote it; delete the consumer "
                f"group that begins with {_RESERVED}"
            ) from None


class OutputTakenError(StreamAnonError):
    """The output belongs to another group or policy: rows could be published in two groups."""

    exit_code: ClassVar[int] = 3

    def __init__(self, output: str, holder: Claim, mine: Claim) -> None:
        why = "another policy" if holder.group == mine.group else "another consumer group"
        way = (
            "move the group with: stream-anon handover" if holder.group == mine.group else "name another `kafka.output`"
        )
        super().__init__(
            f"the output topic {output} belongs to {why}: {holder}; this is {mine}. Two of them would publish the same "
            f"people twice, in other groups: {way}; or, once the holder has ended for good and nobody uses what it "
            "published any more, take the topic over: stream-anon run --takeover (docs/kafka.md, one output, one group)"
        )


def claim_group(output: str) -> str:
    """Return the name of the consumer group that keeps the claim on a topic."""
    return _RESERVED + output


class OutputClaim:
    """The claim on one output, seen through a transport that is a member of its reserved group.

    `check_rights` is called when the broker gives no answer: it raises `NotAllowedError` if a right is missing.
    `ledger` is the topic that keeps a copy of the claim, if there is one: the text beside the offset ends with its id.
    """

    def __init__(
        self, transport: Transport, output: str, check_rights: Callable[[], None], ledger: str | None = None
    ) -> None:
        self._transport, self._output, self._check_rights = transport, output, check_rights
        self._ledger, self._key = ledger, f"claim/{output}".encode()
        self._copied = ledger is None  # whether the claim that was last seen is in the ledger topic, too

    def holder(self) -> Claim | None:
        """Return who holds the output now, after a claim that is under way has ended; None if nobody does."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            try:
                found = self._transport.ledgers([HOME])
            except FencedError:
                self._check_rights()
                raise
            if HOME in found:
                beside = found[HOME]
                text, _, ledger = ("" if beside is None else beside.metadata).partition("\0")[0].partition("\n")
                self._copied = self._ledger is None or (ledger != "" and ledger == self._ledger_id())
                claim = Claim.of(text or self._copy())
                return claim if claim is not None and claim.topic_id == self.topic_id else None
            self._check_rights()
        raise TransportError(f"{self._output}: a claim on it stays open: ask again")

    def _ledger_id(self) -> str:
        return "" if self._ledger is None else self._transport.facts(self._ledger).topic_id

    def _copy(self) -> str:
        """Return the last claim that the ledger topic holds, empty if it holds none."""
        if self._ledger is None:
            return ""
        with suppress(TransportError):  # there is no such topic yet
            self._transport.facts(self._ledger)
            found = self._transport.read(self._ledger, {HOME: 0}, committed=True)
            claims = {record.offset: record.value for record in found if record.key == self._key}
            return (claims[max(claims)] or b"").decode() if claims else ""
        return ""

    @property
    def topic_id(self) -> str:
        """The id of the output topic as it is now."""
        return self._transport.facts(self._output).topic_id

    def hold(self, mine: Claim, *, takeover: bool = False, instead_of: Claim | None = None) -> Claim | None:
        """Claim the output, or raise `OutputTakenError`; return who held it before.

        With `takeover` it is taken from whoever holds it, with `instead_of` from this holder alone. Only the member
        that the reserved group gave the partition may write: of two that come at once the second finds the first.
        """
        before = self._judge(mine, takeover, instead_of)
        if before == mine and self._copied:
            return before
        for last in (False,) * (_TRIES - 1) + (True,):
            try:
                member = self._join()
                before = self._judge(mine, takeover, instead_of)
                self._transport.begin()
                if self._ledger is not None:
                    self._transport.write([Placed(self._ledger, HOME, self._key, mine.text().encode())])
                beside = f"{mine.text()}\n{self._ledger_id()}\0"
                self._transport.send_offsets({HOME: Committed(0, beside)}, member)
                self._transport.commit()
                return before
            except (AbortableError, OutcomeUnknownError):
                self._transport.renew()
                if self.holder() == mine:
                    return before
                if last:
                    raise
        raise AssertionError("not reached")

    def _judge(self, mine: Claim, takeover: bool, instead_of: Claim | None) -> Claim | None:
        holder = self.holder()
        if holder in (None, mine, instead_of) or takeover:
            return holder
        assert holder is not None  # noqa: S101 - for the type checker
        raise OutputTakenError(self._output, holder, mine)

    def _join(self) -> Membership:
        """Return the membership under which the claim is committed."""
        until, wait = time.monotonic() + _PATIENCE, 0.0
        while time.monotonic() < until:
            found = self._transport.poll(wait, 1).membership
            if found is not None and HOME in found.partitions:
                return found
            wait = 0.1
        raise TransportError(f"{self._output}: another worker is claiming it and does not end: try again")
