"""A topic's past into a topic, in memory: whatever dies at whichever step, the same groups, and each row once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from stream_anon.cli.prepare import prepare
from stream_anon.core.schema import Schema
from stream_anon.demo import admissions, policy_text
from stream_anon.errors import StreamAnonError
from stream_anon.kafka.transport import Polled
from stream_anon.local.anonymize import Anonymization
from stream_anon.replay import history, topic_writer
from stream_anon.replay.history import TopicHistory
from stream_anon.replay.offset_range import OffsetRange, OffsetRangeError, range_of
from stream_anon.replay.progress import ReplayProgressError
from stream_anon.replay.replay import Replay, own_times
from stream_anon.replay.topic_writer import TopicWriter
from stream_anon.testing.memory import MemoryTransport
from stream_anon.testing.memory_log import MemoryBroker

COUNT, PARTITIONS = 160, 3


class Died(BaseException):
    """The process is gone."""


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    path = tmp_path_factory.mktemp("policy") / "policy.yaml"
    path.write_text(
        policy_text().replace("version: 1", "version: 1\nsecret: a secret only for the tests, of no value", 1)
    )
    return prepare(path)[1]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_writer, "AT_ONCE", 25)
    monkeypatch.setattr(history, "AT_ONCE", 40)
    monkeypatch.setattr(history, "AHEAD", 20)


@pytest.fixture
def source() -> MemoryBroker:
    return filled()


def filled() -> MemoryBroker:
    """Records in two of three partitions; times run unevenly and now and then backwards."""
    broker = MemoryBroker("in", partitions=PARTITIONS)
    for i, record in enumerate(islice(admissions(3), COUNT)):
        broker.produce("in", i * i % PARTITIONS, record, 1_700_000_000 + i / 20 - (3 if i % 17 == 0 else 0))
    return broker


def sink(**facts: str) -> MemoryBroker:
    broker = MemoryBroker("out", partitions=2)
    broker.create_topic("out", 2, **facts)
    return broker


def once(
    schema: Schema,
    source: MemoryBroker,
    out: MemoryBroker,
    batch: str | None = None,
    before: Callable[[str], None] = lambda operation: None,
    run: str = "one run",
    since: tuple[str, ...] = (),
) -> OffsetRange | None:
    reader, writer = MemoryTransport(source, "reader", before=before), MemoryTransport(out, "replay", before=before)
    writer = TopicWriter(writer, "out", run, schema.keys.ledger)
    kept, begun = writer.open()
    if writer.done:
        return kept
    offset_range = kept or range_of(reader, "in", since, ())
    if not begun:
        writer.claim(offset_range)
    recording = TopicHistory(reader, "in", offset_range)
    if batch is None:
        Replay(schema, own_times, None, writer).run(recording.parts(), lambda rejections: None, lambda share: None)
    else:
        whole = Anonymization(schema, batch)
        whole.read(recording.parts(), lambda rejections: None, lambda share: None)
        whole.divide(lambda share: None)
        whole.write(writer, lambda share: None)
    return offset_range


def published(out: MemoryBroker, committed: bool = True) -> list[dict[str, Any]]:
    return [json.loads(entry.value or b"") for entry in out.read("out", committed)]


def places(out: MemoryBroker, committed: bool = True) -> list[tuple[str, int, str]]:
    return [(r["_anon"]["group"], r["_anon"]["row"], json.dumps(r)) for r in published(out, committed)]


def dying(after: int) -> Callable[[str], None]:
    steps = iter(range(after))

    def before(operation: str) -> None:
        if next(steps, None) is None:
            raise Died

    return before


@pytest.mark.parametrize("batch", [None, "sweep"])
def test_killed_at_any_step_it_goes_on_and_nothing_is_doubled(schema: Schema, batch: str | None) -> None:
    whole = sink()
    once(schema, filled(), whole, batch)
    expected = sorted(places(whole))
    assert len(set(expected)) == len(expected) > COUNT * 0.8
    deaths, half_seen = 0, 0
    for step in range(2, 300, 19 if batch is None else 37):
        source, out = filled(), sink()
        for life in itertools.count(1):
            try:
                once(schema, source, out, batch, dying(step * life))
                break
            except Died:
                deaths += 1
            if out.committed:  # from then on the past is settled, whatever arrives
                source.produce("in", life % PARTITIONS, next(admissions(9)), 1_800_000_000)
        assert sorted(places(out)) == expected
        seen = places(out, committed=False)
        assert set(seen) == set(expected), "whoever reads uncommitted records sees no other group"
        half_seen += len(seen) > len(expected)
    assert deaths > 10
    assert half_seen > 2, "some runs must die with records shown and not committed"


def test_the_order_of_reading_does_not_matter(schema: Schema, source: MemoryBroker) -> None:
    offset_range: OffsetRange = {p: (0, len(log.entries)) for p, log in enumerate(source.topics["in"])}

    class Uneven(MemoryTransport):
        def poll(self, timeout: float, limit: int) -> Polled:
            return super().poll(timeout, 7)

    rows = []
    for kind in (MemoryTransport, Uneven):
        parts = list(TopicHistory(kind(source, kind.__name__), "in", offset_range).parts())
        rows.append([(len(part), part.refs.tolist(), part.times.tolist(), part.payloads) for part in parts])
        source.leave(kind.__name__)
    assert rows[0] == rows[1]
    assert [length for length, *_ in rows[0]] == [40, 40, 40, 40]
    times = [when for _, _, part, _ in rows[0] for when in part]
    assert times == sorted(times)


def test_an_output_of_something_else_is_refused(schema: Schema, source: MemoryBroker) -> None:
    used = sink()
    used.produce("out", 0, b"{}")
    with pytest.raises(ReplayProgressError, match="was used by something else"):
        once(schema, source, used)
    with pytest.raises(StreamAnonError, match=r"cleanup\.policy"):
        once(schema, source, sink(cleanup_policy="compact,delete"))
    out = sink()
    once(schema, source, out)
    with pytest.raises(ReplayProgressError, match="another replay began here"):
        once(schema, source, out, run="another run")
    before = len(published(out, committed=False))
    once(schema, source, out)
    assert len(published(out, committed=False)) == before


def test_records_that_changed_stop_it_before_anything_more_is_shown(schema: Schema, source: MemoryBroker) -> None:
    out = sink()
    with pytest.raises(Died):
        once(schema, source, out, before=dying(60))
    before = places(out, committed=False)
    assert before
    for log in source.topics["in"][:2]:
        log.entries[2].gone = True
    with pytest.raises(ReplayProgressError, match="made other groups"):
        once(schema, source, out)
    assert places(out, committed=False) == before


@pytest.mark.parametrize("lost", ["request", "response"])
def test_a_commit_without_an_answer(schema: Schema, source: MemoryBroker, lost: str) -> None:
    out, whole = sink(), sink()
    once(schema, source, whole)
    calls = iter(range(10**6))

    class Losing(MemoryTransport):
        def commit(self) -> None:
            self.lose = lost if next(calls) % 3 == 2 else None
            super().commit()

    reader, writer = MemoryTransport(source, "reader"), Losing(out, "replay")
    writer = TopicWriter(writer, "out", "one run", schema.keys.ledger)
    writer.open()
    offset_range = range_of(reader, "in", (), ())
    writer.claim(offset_range)
    Replay(schema, own_times, None, writer).run(
        TopicHistory(reader, "in", offset_range).parts(), lambda _: None, lambda _: None
    )
    assert sorted(places(out)) == sorted(places(whole))


def test_where_a_rejected_record_stands(schema: Schema) -> None:
    broker = MemoryBroker("in", partitions=2)
    broker.produce("in", 1, b"not JSON", 5.0)
    broker.produce("in", 0, None, 6.0)
    recording = TopicHistory(MemoryTransport(broker, "reader"), "in", {0: (0, 1), 1: (0, 1)})
    [part] = recording.parts()
    assert part.payloads == [b"not JSON", None]
    assert [recording.place(n) for n in (1, 2)] == [
        {"topic": "in", "partition": 1, "offset": 0},
        {"topic": "in", "partition": 0, "offset": 0},
    ]


EDGES = [
    # remark, from, to, span
    ("all of it", [], [], {0: (2, 10), 1: (0, 4)}),
    ("an offset for all", ["3"], ["6"], {0: (3, 6), 1: (3, 4)}),
    ("of one partition", ["0:5"], ["0:7", "1:2"], {0: (5, 7), 1: (0, 2)}),
    ("a time", ["1970-01-01T00:00:03Z"], ["1970-01-01T00:00:05Z"], {0: (3, 5), 1: (3, 4)}),
    ("a time with nothing after it", ["2001-01-01"], [], {0: (10, 10), 1: (4, 4)}),
    ("an end before the beginning", ["0:8"], ["0:4"], {0: (8, 8), 1: (0, 4)}),
]


@pytest.mark.parametrize(("since", "until", "offset_range"), [e[1:] for e in EDGES], ids=[e[0] for e in EDGES])
def test_spans(since: list[str], until: list[str], offset_range: OffsetRange) -> None:
    assert range_of(two_partitions(), "in", since, until) == offset_range


MISTAKES = [("0:1", "begins at offset 2"), ("7:1", r"2 partition\(s\)"), ("yesterday", "a time like")]


@pytest.mark.parametrize(("edge", "word"), MISTAKES)
def test_spans_that_are_not_there(edge: str, word: str) -> None:
    with pytest.raises(OffsetRangeError, match=word):
        range_of(two_partitions(), "in", [edge], [])


def two_partitions() -> MemoryTransport:
    broker = MemoryBroker("in", partitions=2)
    for partition, count in enumerate((10, 4)):
        for second in range(count):
            broker.produce("in", partition, b"{}", float(second))
    broker.topics["in"][0].start = 2
    return MemoryTransport(broker, "reader")
