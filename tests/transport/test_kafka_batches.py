"""Many records in one transaction, in batches that fit the topic: none lost, none doubled, no failure unnoticed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

from stream_anon.kafka.clients import client_of
from stream_anon.kafka.clients.kafka_python.batches import has_batches, send_all
from stream_anon.kafka.clients.kafka_python.topics import await_topics
from stream_anon.kafka.clients.kafka_python.transport import KafkaTransport
from stream_anon.kafka.transport import AbortableError, Outgoing, TransportError


class Topic:
    """A topic of three partitions, and a transport that writes to it."""

    def __init__(self, bootstrap: str, name: str, client: str) -> None:
        self.bootstrap, self.name = bootstrap, name
        self.transport = client_of(client).transport(
            bootstrap, name, f"{name}-in", transactional_id=name, options={"transaction.timeout.ms": 3000}
        )

    def create(self, **configs: str) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        admin.create_topics([NewTopic(self.name, 3, 1, topic_configs=configs)])
        await_topics(admin, [self.name])
        admin.close()
        self.transport.facts(self.name)
        self.transport.begin()

    def limit(self, most: int) -> None:
        """From now on batches may have so many bytes."""
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, self.name, {"max.message.bytes": str(most)})])
        admin.close()

    def read(self) -> dict[int, list[tuple[bytes, bytes]]]:
        """All committed records by partition."""
        places = [TopicPartition(self.name, p) for p in range(3)]
        reader = KafkaConsumer(bootstrap_servers=self.bootstrap, isolation_level="read_committed")
        reader.assign(places)
        reader.seek_to_beginning(*places)
        ends = reader.end_offsets(places)
        found = defaultdict(list)
        while any(reader.position(place) < ends[place] for place in places):
            for place, records in reader.poll(timeout_ms=200, max_records=5_000).items():
                found[place.partition] += [(record.key, record.value) for record in records]
        reader.close()
        return found


each_client = pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])


@pytest.fixture
def topic(bootstrap: str, name: str, client: str) -> Iterator[Topic]:
    made = Topic(bootstrap, name, client)
    yield made
    made.transport.close()


def records(name: str, count: int) -> list[Outgoing]:
    """Every fiftieth is too large to be put in unseen."""
    sizes = [70_000 if i % 50 == 0 else 300 for i in range(count)]
    return [Outgoing(name, f"group {i // 7}".encode(), [b"%d %b" % (i, b"x" * n)]) for i, n in enumerate(sizes)]


@each_client
def test_every_record_once_and_a_key_in_one_place(topic: Topic) -> None:
    topic.create()
    sent = records(topic.name, 3_000)
    topic.transport.send(sent)
    if isinstance(topic.transport, KafkaTransport):
        assert has_batches(topic.transport._producer), "this client keeps its open batches elsewhere: see kafka_batches"
        assert len(topic.transport._futures) < len(sent) / 5, "records went in one by one: see kafka_batches"
    topic.transport.commit()
    found = topic.read()
    assert Counter(pair for pairs in found.values() for pair in pairs) == Counter((r.key, r.values[0]) for r in sent)
    for pairs in found.values():
        numbers = [int(value.partition(b" ")[0]) for _, value in pairs]
        assert numbers == sorted(numbers), "the order was kept"
    keys = [{key for key, _ in pairs} for pairs in found.values()]
    assert sum(map(len, keys)) == len(set().union(*keys)), "no key stands in two partitions"


@each_client
def test_a_topic_of_small_batches_gets_small_batches(topic: Topic) -> None:
    topic.create(**{"max.message.bytes": "3000"})
    sent = [Outgoing(topic.name, b"k", [b"%d" % i * 20]) for i in range(400)]
    topic.transport.send(sent)
    topic.transport.commit()
    assert [value for pairs in topic.read().values() for _, value in pairs] == [record.values[0] for record in sent]


@each_client
def test_a_record_that_is_refused_keeps_the_whole_transaction_back(topic: Topic) -> None:
    topic.create(**{"max.message.bytes": "3000"})
    topic.transport.send([Outgoing(topic.name, b"k", [b"x" * (5_000 if i == 7 else 20)]) for i in range(20)])
    with pytest.raises(AbortableError):
        topic.transport.commit()
    topic.transport.renew()
    assert not any(topic.read().values())


def test_a_client_built_otherwise_gets_every_record_by_send() -> None:
    calls: list[tuple[str, bytes, int]] = []
    producer = SimpleNamespace(
        partitions_for=lambda topic: {0, 1},
        send=lambda topic, value, key, headers, partition: calls.append((topic, value, partition)),
    )
    assert not has_batches(producer)
    sent = records("t", 50)
    assert len(list(send_all(producer, sent))) == 50
    assert Counter(value for _, value, _ in calls) == Counter(record.values[0] for record in sent)


@each_client
def test_a_limit_that_was_lowered_meanwhile_stops_the_transaction(topic: Topic) -> None:
    """One answer stands for a batch: where the client cuts one in two, that answer tells of one part only."""
    sent = [Outgoing(topic.name, b"group %d" % i, [b"x" * 300] * 200) for i in range(20)]
    topic.create()
    topic.limit(20_000)
    topic.transport.send(sent)
    with pytest.raises(TransportError):
        topic.transport.commit()
    topic.transport.renew()
    assert not topic.read()
    topic.transport.facts(topic.name)  # as a worker does that begins anew
    topic.transport.renew()
    topic.transport.begin()
    topic.transport.send(sent)
    topic.transport.commit()
    assert sum(map(len, topic.read().values())) == 4_000


@pytest.mark.parametrize("client", ["confluent-kafka"])
def test_records_after_a_refused_one_are_left_to_the_commit(topic: Topic) -> None:
    """The client refuses records as soon as it knows that the transaction failed; only the commit knows the reason."""
    topic.create()
    topic.limit(2_000)
    sent = [Outgoing(topic.name, b"k", [b"x" * 5_000])]
    topic.transport.send(sent)
    topic.transport._open.flush(30)  # type: ignore[attr-defined]
    topic.transport.send(sent)
    with pytest.raises(AbortableError, match="MSG_SIZE_TOO_LARGE"):
        topic.transport.commit()
    topic.transport.renew()
    assert not any(topic.read().values())
