"""A fast reader of JSON records: cut each into the parts that many records share, and parse every different part once.

A record is `{QIs,OWN,"_anon":{MARK,"row":N,SUMS}}`. Each part is read as an object of exactly its fields, so that the
parts together are the record; a record of another shape is left to the slower reader.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from stream_anon.auditor.policy import Rules
from stream_anon.auditor.reading.chunks import ENVELOPE, FACTS, MOST, Chunk, Coded, Ints, counts, hashable, tuples
from stream_anon.auditor.reading.structures import Form, Kinds, label_kinds, own_kinds

_NUMBER = re.compile(rb"0|[1-9][0-9]{0,9}")
_ENVELOPE, _ROW = f',"{ENVELOPE}":{{'.encode(), b',"row":'


class Fragments:
    """The reader of chunks of records that have the usual shape; it returns None for any other."""

    def __init__(self, rules: Rules) -> None:
        own = own_kinds(rules)
        self._first = f',"{next(iter(own))}":'.encode()
        self._labels, self._own = Form(label_kinds(rules)), Form(own)
        self._mark = Form(_facts("policy", "group"))
        self._sums = Form(_facts("size", "subjects", "loss"))

    @staticmethod
    def fits(rules: Rules) -> bool:
        """Tell whether records of this policy have the shape: no nested field, something published unchanged."""
        return bool(own_kinds(rules)) and not any("." in name for name in rules.published)

    def read(self, lines: Sequence[bytes], times: Ints | None) -> Chunk | None:
        """Return the chunk of these lines, or None if any of them has another shape."""
        heads: dict[bytes, int] = {}
        owns: dict[bytes, int] = {}
        marks: dict[bytes, int] = {}
        sums: dict[bytes, int] = {}
        numbers: dict[bytes, int] = {}
        at: tuple[list[int], ...] = ([], [], [], [], [])
        in_heads, in_owns, in_marks, in_sums, in_numbers = (places.append for places in at)
        last_head = last_mark = last_end = None
        h = m = s = 0
        for line in lines:
            head, _, rest = line.partition(self._first)
            own, _, tail = rest.rpartition(_ENVELOPE)
            mark, _, back = tail.partition(_ROW)
            number, _, end = back.partition(b",")
            if head != last_head:  # neighbours mostly share their group, and comparing costs less than looking up
                last_head, h = head, heads.setdefault(head, len(heads))
            if mark != last_mark:
                last_mark, m = mark, marks.setdefault(mark, len(marks))
            if end != last_end:
                last_end, s = end, sums.setdefault(end, len(sums))
            in_heads(h)
            in_owns(owns.setdefault(own, len(owns)))
            in_marks(m)
            in_sums(s)
            in_numbers(numbers.setdefault(number, len(numbers)))
        ends = [end.rstrip(b"\r\n") for end in sums]
        if not all(map(_NUMBER.fullmatch, numbers)) or not all(end.endswith(b"}}") for end in ends):
            return None
        begin = b"{" + self._first[1:]
        columns = (
            self._labels.columns([head + b"}" for head in heads]),
            self._own.columns([begin + own + b"}" for own in owns]),
            self._mark.columns([b"{" + mark + b"}" for mark in marks]),
            self._sums.columns([b"{" + end[:-1] for end in ends]),
        )
        row = np.array(list(map(int, numbers)), dtype=np.int64)[at[4]]
        return self._chunk(columns, np.array(at[:4]), row, times)

    def _chunk(
        self, columns: Sequence[list[list[Any]] | None], index: Ints, row: Ints, times: Ints | None
    ) -> Chunk | None:
        labels, own, mark, sums = columns
        if labels is None or own is None or mark is None or sums is None:
            return None
        if row.max() >= MOST or not all(map(counts, sums[:2])):
            return None
        values = [[hashable(value) for value in column] for column in own]
        return Chunk(
            Coded(tuples(labels, 0), index[0]),
            Coded(tuples(values, 0), index[1]),
            Coded(tuples(mark, 0), index[2]),
            Coded(tuples(sums, 0), index[3]),
            row,
            times,
        )


def _facts(*names: str) -> Kinds:
    return {name: FACTS[name] for name in names}
