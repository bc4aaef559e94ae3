"""How a published record is written: what a group's records share is written once, the rest is put in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from stream_anon.core.hierarchy import Hierarchy, ValueSet
from stream_anon.errors import PrivacyViolation

if TYPE_CHECKING:
    from stream_anon.core.gate import Released

ENVELOPE = "_anon"
"""The field in which a published record tells of its group."""

_JSON = msgspec.json.Encoder()
_Label = Callable[[int, int], bytes]


class Envelope(NamedTuple):
    """What the records of a group tell of it, but for the number of each: `first` is that of the first one.

    `subjects` is None where the policy names no subject: nobody counted the people then.
    """

    group: str
    first: int
    size: int
    subjects: int | None
    loss: float


class RecordTemplate:
    """Puts labels, published values and envelopes together as records; `policy` is how the envelopes name it.

    Only where no field stands inside another and no name is given twice (`flat`) are records made of written pieces;
    else they are dictionaries first.
    """

    def __init__(self, quasi: Sequence[tuple[str, Hierarchy]], published: Sequence[str], policy: str) -> None:
        self.policy = policy
        self._sets = [(q, h) for q, (_, h) in enumerate(quasi) if isinstance(h, ValueSet)]
        self._names = [*(name for name, _ in quasi), *published, ENVELOPE]
        self._labels: list[_Label] = [_as_json(hierarchy) for _, hierarchy in quasi]
        self.flat = len(set(self._names)) == len(self._names) and not any("." in name for name in self._names)
        keys = [b"%b%b:" % (b"," if i else b"{", _JSON.encode(name)) for i, name in enumerate(self._names)]
        first = b"".join(keys[len(quasi) : -1][:1])
        self._opening = b"%b".join([key.replace(b"%", b"%%") for key in [*keys[: len(quasi)], first]])
        self._between = keys[len(quasi) : -1][1:]
        self._telling = keys[-1] + b'{"policy":' + _JSON.encode(policy) + b',"group":"'

    def written(self, released: Released, first: int, last: int) -> Iterator[list[bytes]]:
        """Write the records of some groups as JSON, if the template is flat; values are written all together."""
        starts, begin = released.starts, released.starts[first]
        columns = [each_as_json(column) for column in released.values[begin : starts[last]].T.tolist()]
        ends = released.low[first:last].T.tolist(), released.high[first:last].T.tolist()
        labels = [list(map(label, low, high)) for label, low, high in zip(self._labels, *ends, strict=True)]
        for q, values in self._sets:
            sets = [values.label_of(released.rows.qi[a:b, q]) for a, b in pairwise(starts[first : last + 1])]
            labels[q] = each_as_json(sets)
        for g, cells in zip(range(first, last), zip(*labels, strict=True), strict=True):
            group, number, size, subjects, loss = released.envelope(g)
            before = b'%b%b","row":' % (self._telling, group.encode())
            after = b',"size":%d,"subjects":%b,"loss":%b}}' % (size, _JSON.encode(subjects), _JSON.encode(loss))
            own = [column[starts[g] - begin : starts[g + 1] - begin] for column in columns]
            more = chain.from_iterable(zip(map(repeat, self._between), own[1:], strict=True))
            opening = repeat(self._opening % cells)
            rows = zip(opening, *own[:1], *more, repeat(before), _numbers(number, size), repeat(after), strict=False)
            yield list(map(b"".join, rows))

    def nested(self, values: Sequence[Any], envelope: Envelope, row: int) -> dict[str, Any]:
        """Return a record as a dictionary, with fields of dotted names inside others."""
        group, _, size, subjects, loss = envelope
        told = {"policy": self.policy, "group": group, "row": row, "size": size, "subjects": subjects, "loss": loss}
        record: dict[str, Any] = {}
        for name, value in zip(self._names, (*values, told), strict=True):
            place, last = record, name
            if "." in name:
                *parents, last = name.split(".")
                for parent in parents:
                    place = place.setdefault(parent, {})
            place[last] = value
        return record


def each_as_json(values: Sequence[Any]) -> list[bytes]:
    """Every value written on its own."""
    lines = _JSON.encode_lines(values).split(b"\n")[:-1]
    if len(lines) != len(values):  # within a value there is no line feed, or values would move to other rows
        raise PrivacyViolation("values were written in more or fewer lines than there are")
    return lines


def writable(values: Sequence[Any]) -> bool:
    """Whether the published values of one row can be written as JSON."""
    try:
        _JSON.encode(values)
    except Exception:  # whatever it is: the row cannot leave
        return False
    return True


@lru_cache(maxsize=1024)
def _numbers(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


def _as_json(hierarchy: Hierarchy) -> _Label:
    @lru_cache(maxsize=4096)
    def label(low: int, high: int) -> bytes:
        return _JSON.encode(hierarchy.label(low, high))

    return label
