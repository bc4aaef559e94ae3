"""Which part of a topic's past is meant: from where to where in each partition, said by offset or by time."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence

from stream_anon.errors import StreamAnonError
from stream_anon.kafka.transport import Transport
from stream_anon.replay.replay import instant

OffsetRange = dict[int, tuple[int, int]]
"""Per partition the first offset, and the first one that is not meant any more."""

_OFFSET = re.compile(r"(?:(?P<partition>\d+):)?(?P<offset>\d+)")


class SpanError(StreamAnonError):
    """What was asked for is not in the topic."""

    exit_code = 2


def span_of(transport: Transport, topic: str, since: Sequence[str], until: Sequence[str]) -> OffsetRange:
    """The whole past up to the present ends, or what lies between the edges.

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
            raise SpanError(f"partition {p} of {topic} begins at offset {first[p]}: what was before is gone")
    begin = {p: min(offset, end[p]) for p, offset in begin.items()}
    return {p: (begin[p], max(begin[p], min(stop[p], end[p]))) for p in bounds}


def refuse_gone(transport: Transport, topic: str, offset_range: OffsetRange) -> None:
    """A run that goes on needs every record of its span again, to make the same groups."""
    bounds = transport.bounds(topic)
    if any(first < end and bounds[p][0] > first for p, (first, end) in offset_range.items()):
        raise StreamAnonError(
            f"{topic}: records of this replay are gone meanwhile, so that its groups cannot be made again; "
            "what is published stays valid; replay what is left into a new place"
        )


def _edges(
    texts: Sequence[str], partitions: dict[int, tuple[int, int]], at: Callable[[float], dict[int, int]]
) -> Iterator[tuple[int, int]]:
    for text in texts:
        match = _OFFSET.fullmatch(text)
        if match is None:
            when = instant(text)
            if math.isnan(when):
                raise SpanError(f"{text}: say OFFSET, PARTITION:OFFSET or a time like 2026-06-01T00:00:00Z")
            yield from at(when).items()
        elif match["partition"] is None:
            yield from dict.fromkeys(partitions, int(match["offset"])).items()
        elif int(match["partition"]) not in partitions:
            raise SpanError(f"{text}: the topic has {len(partitions)} partition(s), numbered from 0")
        else:
            yield int(match["partition"]), int(match["offset"])
