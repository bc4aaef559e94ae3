"""Both ends of a replay, each a file or `kafka:TOPIC`, opened so that an interrupted run can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, cast
from uuid import uuid4

from stream_anon.cli import output
from stream_anon.cli.kafka_setup import need_clients
from stream_anon.core.schema import Schema
from stream_anon.formats.resume import PARTIAL, resumed_file
from stream_anon.formats.tables import Part, TableError, format_of, read_parts
from stream_anon.formats.writers import RecordWriter, refuse_to_overwrite, writer_for

if TYPE_CHECKING:
    from stream_anon.kafka.transport import Transport
    from stream_anon.replay.history import TopicHistory
    from stream_anon.replay.offset_range import OffsetRange
    from stream_anon.replay.topic_writer import TopicWriter

SCHEME = "kafka:"
SPAN = ".span"


def topic_in(text: str) -> str | None:
    """Return the topic that an argument names, None if it names a file."""
    return text.removeprefix(SCHEME) if text.startswith(SCHEME) else None


@dataclass
class Recording:
    """The input of a replay. `facts` identify a recording; the first run fixes the offset range of a topic."""

    name: str
    topic: str | None
    since: Sequence[str] = ()
    until: Sequence[str] = ()
    encoding: str | None = None
    reader: Transport | None = None
    history: TopicHistory | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def settle(self, kept: OffsetRange | None) -> OffsetRange | None:
        """Fix the offset range: that of an earlier run, if there was one. None for a file."""
        if self.reader is None or self.topic is None:
            return None
        from stream_anon.replay.history import TopicHistory
        from stream_anon.replay.offset_range import range_of, refuse_gone

        offset_range = range_of(self.reader, self.topic, self.since, self.until) if kept is None else kept
        refuse_gone(self.reader, self.topic, offset_range)
        self.history = TopicHistory(self.reader, self.topic, offset_range)
        return offset_range

    def parts(self) -> Iterator[Part]:
        """Yield the rows of the recording in parts."""
        return read_parts(Path(self.name), encoding=self.encoding) if self.history is None else self.history.parts()

    @property
    def place(self) -> Callable[[int], Mapping[str, Any]] | None:
        """The function that locates a row, None if its number is its line."""
        return None if self.history is None else self.history.place


@contextmanager
def recording(
    text: str, schema: Schema, since: Sequence[str], until: Sequence[str], encoding: str | None = None
) -> Iterator[Recording]:
    """Open the recording that `text` names."""
    topic = topic_in(text)
    if topic is None:
        format_of(Path(text))
        yield Recording(text, None, encoding=encoding)
        return
    reader = _transport(schema, topic, f"replay-{uuid4().hex[:12]}")
    try:
        found = reader.facts(topic)
        facts = {"topic": found.topic_id, "cluster": found.cluster_id, "since": since, "until": until}
        yield Recording(text, topic, since, until, reader=reader, facts=facts)
    finally:
        reader.close()


class Target(Protocol):
    """The interface of a replay's output. A run claims it with the offset range it reads."""

    @property
    def writer(self) -> RecordWriter:
        """The writer of groups."""
        ...

    @property
    def kept(self) -> OffsetRange | None:
        """The offset range of an interrupted run."""
        ...

    @property
    def done(self) -> bool:
        """Whether an earlier run finished."""
        ...

    def claim(self, offset_range: OffsetRange | None) -> None:
        """Keep the offset range for a resumed run, before anything is written."""
        ...


def target(
    text: str, schema: Schema, facts: Mapping[str, Any], quote_formulas: bool = True
) -> AbstractContextManager[Target]:
    """Open the output that `text` names; `facts` identify a run."""
    topic = topic_in(text)
    if topic is not None:
        return _topic_target(topic, schema, facts)
    return _file_target(Path(text), facts, quote_formulas)


@dataclass
class FileTarget:
    """A file that grows as `OUT.partial`, and the offset range of a topic beside it as `OUT.span`."""

    writer: RecordWriter
    run: str
    path: Path
    kept: OffsetRange | None = None

    @property
    def done(self) -> bool:
        """False: a file that is complete is never opened again."""
        return False

    def claim(self, offset_range: OffsetRange | None) -> None:
        """Keep the range of a topic in a file; a recording in a file needs none."""
        if offset_range is not None and self.kept is None:
            from stream_anon.replay.progress import keep_range

            keep_range(self.path, self.run, offset_range)


@contextmanager
def _file_target(path: Path, facts: Mapping[str, Any], quote_formulas: bool) -> Iterator[Target]:
    if not format_of(path).continues:
        raise TableError(f"{path}: such a file cannot be continued; write .jsonl or .csv, or use anonymize")
    refuse_to_overwrite(path)
    beside, run, kept = path.with_name(path.name + SPAN), "", None
    if "topic" in facts:
        from stream_anon.replay.progress import kept_range, run_of

        run = run_of(**facts)
        kept = kept_range(beside, run)
    with resumed_file(path) as file:
        if file.left:
            if kept is None and "topic" in facts:
                raise TableError(f"{path}{PARTIAL}: exists without {beside.name}; remove it to start again")
            output.say(f"{path}{PARTIAL}: {file.left:,} bytes are already written; resuming after them")
        yield FileTarget(writer_for(path, cast(IO[bytes], file), quote_formulas), run, beside, kept)
    beside.unlink(missing_ok=True)


@dataclass
class TopicTarget:
    """A topic with the progress of this run beside its offset."""

    writer: TopicWriter
    kept: OffsetRange | None
    begun: bool

    @property
    def done(self) -> bool:
        """Whether an earlier run finished."""
        return self.writer.done

    def claim(self, offset_range: OffsetRange | None) -> None:
        """Claim the topic, unless the progress of an earlier run already does."""
        if not self.begun:
            self.writer.claim(offset_range)


@contextmanager
def _topic_target(topic: str, schema: Schema, facts: Mapping[str, Any]) -> Iterator[Target]:
    transport = _transport(schema, topic, f"replay-{topic}")
    from stream_anon.replay.progress import run_of
    from stream_anon.replay.topic_writer import TopicWriter

    try:
        found = transport.facts(topic)
        run = run_of(**facts, output=found.topic_id, output_cluster=found.cluster_id)
        writer = TopicWriter(transport, topic, run, schema.keys.ledger)
        kept, begun = writer.open()
        if begun and not writer.done:
            output.say(f"{topic}: an earlier run was interrupted; resuming after it")
        yield TopicTarget(writer, kept, begun)
    finally:
        transport.close()


def _transport(schema: Schema, topic: str, slot: str) -> Transport:
    """Open a transport with a group of its own; a successor in the same slot takes over at once."""
    need_clients()
    from stream_anon.kafka.clients import client_of
    from stream_anon.worker.factory import kafka_of, transactional_id

    kafka = kafka_of(schema.policy)
    return client_of(kafka.client).transport(
        kafka.bootstrap,
        f"{kafka.group}-{slot}",
        topic,
        transactional_id=transactional_id(kafka.group, slot),
        options=dict(kafka.options) | {"group.instance.id": slot},
    )
