"""Hold ledgers against what does not lie beside their offsets: output, ledger topic, the ledgers of their siblings.

An authentic ledger may be an old one that was put back: by a restored or shortened `__consumer_offsets`, or by anyone
who may commit for the group. Rows that were published since would be published again, in other groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from stream_anon.kafka.transport import AbortableError, Transport
from stream_anon.worker.ledger.ledger import UNSEEN, Ledger, Seen
from stream_anon.worker.ledger.mark import MarkSeal
from stream_anon.worker.takeover.restore import Beginning, Reader, Restorer

_LOOK_EVERY = 1.0  # seconds between looks at the ends of the output: so much of it a successor reads again


class Witness:
    """Whoever saw what was published. `seen` is how far the output is known to have come."""

    def __init__(self, transport: Transport, output: str, seal: MarkSeal) -> None:
        self.seen = UNSEEN
        self._transport, self._output, self._seal = transport, output, seal
        self._topic_id = ""
        self._looked = float("-inf")

    def look(self, now: float) -> None:
        """Ask now and then how far the output has come. A ledger that says less than is true only costs time."""
        if self._topic_id and now - self._looked >= _LOOK_EVERY:
            self._looked = now
            with suppress(AbortableError):  # the broker is not there for the moment
                self.seen = Seen.of(self._topic_id, self._ends())

    def look_anew(self) -> bool:
        """Ask for the topic itself, too, which may be another one by now; tell whether anything is in it."""
        self._topic_id = self._transport.facts(self._output).topic_id
        self.seen = Seen.of(self._topic_id, self._ends())
        return any(self.seen.ends)

    def rolled_back(self, found: Mapping[int, Beginning], reader: Restorer) -> tuple[dict[int, str], set[int]]:
        """Return the partitions whose ledgers were put back or lost, each with the code of its quarantine.

        Beside them those whose owner wrote another ledger while we looked.
        """
        ledgers = {number: begin.ledger for number, begin in found.items() if begin.text is not None}
        kept = {number: begin.text for number, begin in found.items() if number in ledgers or reader.start is None}
        suspects = reader.store.followed({reader.place(number): text for number, text in kept.items()})
        suspects |= self._older(ledgers, reader) if ledgers else set()
        now = self._transport.ledgers(suspects) if suspects else {}
        same = {number for number in suspects if number in now and now[number] == found[number].text}
        return {n: "rolled-back" if n in ledgers else "unproved" for n in same}, suspects - same

    def _older(self, ledgers: Mapping[int, Ledger], reader: Reader) -> set[int]:
        """Return the partitions whose ledgers are older than something that is known of them.

        1. A sibling announces rows as finished by a later ledger. If it has published them meanwhile, then before we
        looked at it, and the output, at which we look after it, shows them.  2. A record that any reader can see was
        announced by a later ledger: that one was committed before it was sent.  3. A committed record was written with
        a later ledger; whether it was committed is only asked if there is such a record.
        """
        told = _told_by_siblings(reader, self._transport)
        false = {number for number, ledger in ledgers.items() if told.get(number, 0) > ledger.sequence}
        rest = {number: ledger for number, ledger in ledgers.items() if number not in false}
        shown, doubtful = self._contradicted(rest, reader, committed=False)
        doubts = {number: rest[number] for number in doubtful}
        return false | shown | self._contradicted(doubts, reader, committed=True)[0]

    def _contradicted(
        self, ledgers: Mapping[int, Ledger], reader: Reader, *, committed: bool
    ) -> tuple[set[int], set[int]]:
        """Return which ledgers the output contradicts, and which others it would if all its records were committed.

        One that is contradicted is not read on for: it may lie far behind the others.
        """
        false: set[int] = set()
        doubtful: set[int] = set()
        rest = dict(ledgers)
        while rest:
            found: set[int] = set()
            for record in self._transport.read(self._output, self._before(rest), committed):
                mark = self._seal.open(record.mark, reader.place(0)) if record.mark else None
                if mark is None:
                    continue
                later = {number for number, ledger in rest.items() if mark.written.get(number, 0) > ledger.sequence}
                found = {number for number, ledger in rest.items() if mark.announced.get(number, 0) > ledger.sequence}
                found |= later if committed else set()
                doubtful |= later
                if found:
                    break
            if not found:
                break
            false |= found
            rest = {number: ledger for number, ledger in rest.items() if number not in found}
        return false, doubtful - false

    def _before(self, ledgers: Mapping[int, Ledger]) -> dict[int, int]:
        """Return offsets of the output that were its end, or not yet written, when the oldest ledger was written."""
        seen = [ledger.seen.ends if ledger.seen.topic == self.seen.topic else () for ledger in ledgers.values()]
        begin = dict.fromkeys(self._transport.bounds(self._output), 0)  # a partition may have been added meanwhile
        return begin | {number: min(ends[number] for ends in seen) for number in range(min(map(len, seen)))}

    def _ends(self) -> list[int]:
        return [end for _, (_, end) in sorted(self._transport.bounds(self._output).items())]


def _told_by_siblings(reader: Reader, transport: Transport) -> dict[int, int]:
    """Return the highest sequence number by which a sibling's announced rows were finished, for each partition."""
    ledgers, _ = reader.read_all(dict(transport.glance(range(reader.facts.partitions))))
    told: dict[int, int] = {}
    for ledger in ledgers:
        for number, sequence in ledger.parties.items():
            told[number] = max(sequence, told.get(number, 0))
    return told
