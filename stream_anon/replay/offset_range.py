"""The part of a topic's past to replay: from where to where in each partition, given by offset or by time."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence

from stream_anon.errors import StreamAnonError
from stream_anon.kafka.transport import Transport
from stream_anon.replay.replay import instant

OffsetRange = dict[int, tuple[int, int]]
"""Per partition the first offset, and the first one behind the range."""

_OFFSET = re.compile(r"(?:(?P<partition>\d+):)?(?P<offset>\d+)")


class OffsetRangeError(StreamAnonError):
    """The requested range is malformed or not in the topic."""

    exit_code = 2


def range_of(transport: Transport, topic: str, since: Sequence[str], until: Sequence[str]) -> OffsetRange:
    """Return the whole past up to the present ends, or the range between the given edges.

    An edge is `OFFSET` (in every partition), `PARTITION:OFFSET`, or a time in ISO 8601: the first record since then. An
    offset beyond the end of a partition is its end; records before its beginning are gone, so they are refused.
    """
    bounds = transport.bounds(topic)
    first = {p: low for p, (low, _) in bounds.items()}
    end = {p: high for p, (_, high) in bounds.items()}
    begin = first | dict(_edges(since, bounds, lambda when: transport.offsets_at(topic, when)))
    stop = end | dict(_edges(until, bounds, lambda when: transport.offsets_at(topic, when)))
    for p, offset in begin.items():
        if offset < first[p]:
            raise OffsetRangeError(f"partition {p} of {topic} begins at offset {first[p]}: earlier records are gone")
    begin = {p: min(offset, end[p]) for p, offset in begin.items()}
    return {p: (begin[p], max(begin[p], min(stop[p], end[p]))) for p in bounds}


def refuse_gone(transport: Transport, topic: str, offset_range: OffsetRange) -> None:
    """Raise if records of the range are gone: a resumed run needs all of them to make the same groups."""
    bounds = transport.bounds(topic)
    if any(first < end and bounds[p][0] > first for p, (first, end) in offset_range.items()):
        raise StreamAnonError(
            f"{topic}: records of this replay are gone by now, so its groups cannot be made again; "
            "what is published stays valid; replay the rest into a new output"
        )


def _edges(
    texts: Sequence[str], partitions: dict[int, tuple[int, int]], at: Callable[[float], dict[int, int]]
) -> Iterator[tuple[int, int]]:
    for text in texts:
        match = _OFFSET.fullmatch(text)
        if match is None:
            when = instant(text)
            if math.isnan(when):
                raise OffsetRangeError(f"{text}: expected OFFSET, PARTITION:OFFSET or a time like 2026-06-01T00:00:00Z")
            yield from at(when).items()
        elif match["partition"] is None:
            yield from dict.fromkeys(partitions, int(match["offset"])).items()
        elif int(match["partition"]) not in partitions:
            raise OffsetRangeError(f"{text}: the topic has {len(partitions)} partition(s), numbered from 0")
        else:
            yield int(match["partition"]), int(match["offset"])
