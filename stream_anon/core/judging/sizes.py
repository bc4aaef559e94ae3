"""How many people blocks are to have: more while too many of them are refused, fewer again while hardly any is."""

from __future__ import annotations

SEEN = 50
"""Blocks judged before their size is reconsidered."""

STEP = 5
"""A size changes by one in so many."""


class BlockSize:
    """The number of people in blocks of one kind, from `least` to `most`; `refused` are the shares to stay between.

    It follows counts of refusals alone, over many blocks: no single value moves it. It changes when `heed` is called.

    >>> size = BlockSize(10, most=40, refused=(0.05, 0.2))
    >>> size.note(judged=60, refused=30)
    >>> size.people, size.heed(), size.people
    (10, None, 12)
    """

    def __init__(self, least: int, most: int, refused: tuple[float, float]) -> None:
        self.people = self._least = least
        self._most = most
        self._few, self._many = refused
        self._judged = self._refused = 0

    def note(self, judged: int, refused: int) -> None:
        """Count blocks that were judged, and those of them that were refused."""
        self._judged += judged
        self._refused += refused

    def heed(self) -> None:
        """Change the size, if enough blocks have been judged since it was changed."""
        if self._judged < SEEN:
            return
        share, step = self._refused / self._judged, max(1, self.people // STEP)
        if share > self._many:
            self.people = min(self.people + step, self._most)
        elif share < self._few:
            self.people = max(self.people - step, self._least)
        self._judged = self._refused = 0
