"""What a ledger has room for, and what follows for reading and announcing. Nothing else knows sizes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from stream_anon.kafka.transport import Committed

_PORTION = 0.75  # share of the room for announced rows that one transaction may take
_AROUND = 1_000  # bytes that a batch of one record takes beside its value, with a key of some hundred characters
_URGENT = 0.6  # share of it from which on rows that were formed have to be announced at once


@dataclass(frozen=True, slots=True)
class LedgerBudget:
    """The room in the text of a ledger, in characters; estimates, but for `fits`.

    `limit` are those before the closing NUL. An announced row takes `per_row`, roughly; an offset `per_offset` at most,
    which is one bit in base 85; everything else, where it belongs, sequence, digest, nonce and tag, `overhead`.
    """

    limit: int = 4_095
    per_row: float = 2.2
    per_offset: float = 1.25 / 8
    overhead: float = 120.0

    def fits(self, committed: Committed) -> bool:
        """Tell whether this text may be committed."""
        return len(committed.metadata) <= self.limit + 1

    @property
    def record_bytes(self) -> int:
        """The largest record that keeps such a text, with its key and what a batch of one takes around it."""
        return self.limit + 1 + _AROUND

    @property
    def largest_k(self) -> int:
        """The largest k that can be promised: a group is announced whole in one ledger, and may be larger than k."""
        return int(self.limit / self.per_row / 3)

    def pause_at(self, k: int) -> float:
        """Return the share of a ledger at which reading stops, so that two groups of k still find room."""
        return min(0.75, 1 - (2 * k * self.per_row + 300) / self.limit)

    def window(self, length: int, announced: int, waiting: int, span: int | None) -> float:
        """Return how many characters the offsets of a partition may come to take without another being read.

        `length` is that of the text, 0 if there is none, `announced` the number of rows in it, `span` how far the
        offsets that wait lie apart, None if not all of them were read again yet: those are still in the text. Finishing
        some of many that wait turns a text that compresses well into one that does not.
        """
        now = max(self.overhead, length - self.per_row * announced) + waiting * self.per_offset
        if span is None:
            return now
        if not waiting:
            return self.overhead
        plain = self.overhead + span * self.per_offset
        return min(plain, now) if length else plain

    def share(self, window: float) -> float:
        """Return which part of a ledger a window takes."""
        return window / self.limit

    def room(self, windows: Sequence[float]) -> float:
        """Return how many characters ledgers have left for announced rows, all together."""
        return sum([max(0.0, self.limit - window) for window in windows])

    def rows(self, characters: float) -> int:
        """Return how many announced rows find room in so many characters."""
        return int(characters / self.per_row)

    def fitting(self, sizes: Sequence[int], windows: Sequence[float]) -> int:
        """Estimate how many of some groups, in their order, can be announced at once; at least one is tried."""
        most = self.rows(self.room(windows))
        return bisect_right(list(accumulate(sizes)), most) or min(1, len(sizes))

    def urgent(self, windows: Sequence[float], unannounced: int) -> bool:
        """Tell whether so many unannounced rows are about to find no room."""
        return unannounced * self.per_row > _URGENT * self.room(windows)

    def readable(self, windows: Sequence[float], fullest: float, unannounced: int) -> int:
        """Return how many more records may be read.

        1. A portion is what one transaction announces; one that waits for its own may be joined by one more.
        2. All may be of the partition that is fullest: they take a quarter of what it has left, or half with gaps.
        """
        portion = self.rows(_PORTION * self.room(windows))
        return min(portion, 2 * portion - unannounced, int((self.limit - fullest) / (4 * self.per_offset)))


INLINE = LedgerBudget()
"""The room of a ledger beside an offset: brokers take 4,096, and one client reads text without NUL past its end."""

IN_TOPIC = LedgerBudget(limit=1_000_000, per_row=4.5)
"""The room of a ledger in a topic of its own, by the default of `max.message.bytes`, 1,048,588. Rows that wait are
spread over millions of offsets, so that naming one takes more."""
