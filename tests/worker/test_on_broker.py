"""The rules of the protocol on a real broker, where each failure was once seen to happen."""

from __future__ import annotations

import json
import zlib
from base64 import b85decode

import pytest
from broker_world import World, each_client, notes, quarantine, rows
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import NewTopic

from stream_anon.errors import StreamAnonError
from stream_anon.kafka.local_broker.broker import LocalBroker
from stream_anon.kafka.transport import Committed, OutcomeUnknownError, Transport
from stream_anon.worker.ledger.codec import Codec, LedgerError
from stream_anon.worker.ledger.ledger import Place


def test_eight_partitions_on_one_worker_and_dead_letters(world: World) -> None:
    world.create(8)
    for partition in range(8):
        world.produce(*rows(9, 100 * partition), b"bad SECRET", None, partition=partition)
    worker = world.worker()
    world.published(72, worker)
    letters = world.read(world.dead)
    assert len(letters) == 16
    assert "SECRET" not in json.dumps(letters)
    assert len({record["v"] for record in world.read()}) == 72


def test_a_successor_publishes_what_was_announced(world: World) -> None:
    world.create()
    world.produce(*rows(3))
    world.announce_and_leave()
    assert world.read(level="read_uncommitted") == []
    world.published(3, world.worker())


@each_client
def test_wiped_metadata_is_a_quarantine(world: World) -> None:
    world.create()
    world.produce(*rows(4))
    world.published(3, world.worker())
    world.leave()
    tool = KafkaConsumer(bootstrap_servers=world.bootstrap, group_id=world.name, enable_auto_commit=False)
    tp = TopicPartition(world.input, 0)
    tool.assign([tp])
    tool.commit({tp: OffsetAndMetadata(0, "", -1)})
    tool.close(autocommit=False)
    worker = world.worker()
    assert quarantine(world, worker) == {0: "empty"}
    assert not worker.ready
    assert len(world.read()) == 3


def test_a_topic_made_anew_is_a_quarantine(world: World) -> None:
    world.create()
    world.produce(*rows(4))
    world.published(3, world.worker())
    world.leave()
    world.admin.delete_topics([world.input])
    world.partitions(0)
    world.admin.create_topics([NewTopic(world.input, 1, 1)])
    world.partitions(1)
    world.produce(*rows(9))
    # A broker that forgot the offsets with the topic leaves nothing to be misplaced; both are refused.
    assert quarantine(world, world.worker())[0] in ("misplaced", "unproved")
    assert len(world.read()) == 3


def test_a_partition_added_under_load_is_read_from_its_beginning(world: World) -> None:
    from kafka.admin import NewPartitions

    world.create()
    worker = world.worker()
    world.produce(*rows(3))
    world.published(3, worker)
    world.until(lambda: worker.ownership.known == 1, worker)
    world.admin.create_partitions({world.input: NewPartitions(2)})
    world.partitions(2)
    producer = KafkaProducer(bootstrap_servers=world.bootstrap)
    for value in rows(3, 50):
        producer.send(world.input, value=value, partition=1)
    producer.close()
    world.produce(*rows(3, 10))
    world.published(9, worker)
    assert notes(worker).quarantined == {}


@each_client
@pytest.mark.parametrize("lost", ["request", "response"])
def test_a_commit_without_an_answer(world: World, lost: str) -> None:
    def losing(transport: Transport) -> None:
        commit, left = transport.commit, iter(range(2, -1, -1))

        def lose() -> None:
            at = next(left, None)
            if at != 0 or lost == "response":
                commit()
            if at == 0:
                raise OutcomeUnknownError("no answer")

        transport.commit = lose  # type: ignore[method-assign]

    world.create()
    worker = world.worker(change=losing)
    world.until(lambda: worker.state.partitions != {}, worker)
    world.produce(*rows(6))
    world.published(6, worker)
    assert ("transaction", "unknown") in notes(worker).seen


def test_a_compacted_output_is_refused(world: World) -> None:
    world.create(**{"cleanup.policy": "compact"})
    with pytest.raises(StreamAnonError, match=r"cleanup\.policy"):
        world.worker().run()


def test_a_record_too_large_for_the_output(world: World) -> None:
    world.create(**{"max.message.bytes": "3000"})
    worker = world.worker()
    worker.ownership.check_topics()
    world.produce(b"0", b"x" * 4000, b"1", b"2", b"3", b"4")
    world.published(3, worker)
    assert [letter["code"] for letter in world.read(world.dead)] == ["oversized"]


@each_client
def test_tls_and_scram(world: World, local_broker: LocalBroker) -> None:
    if world.bootstrap != local_broker.bootstrap:
        pytest.skip("the broker under test is not ours")
    world.create()
    world.produce(*rows(3))
    options = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": local_broker.user,
        "sasl.password": local_broker.password,
        "ssl.ca.location": str(local_broker.certificate),
        "compression.type": "gzip",
    }
    world.published(3, world.worker(options=options, bootstrap=local_broker.sasl_bootstrap))


def test_offsets_that_expired_are_not_read_again(world: World) -> None:
    world.create()
    world.produce(*rows(4))
    world.published(3, world.worker())
    world.leave()
    world.deserted()
    world.admin.delete_group_offsets(world.name, [TopicPartition(world.input, 0)])
    assert quarantine(world, world.worker()) == {0: "unproved"}
    assert len(world.read()) == 3


def test_an_offset_moved_by_a_tool_is_a_quarantine(world: World) -> None:
    world.create()
    world.produce(*rows(4))
    world.published(3, world.worker())
    world.leave()
    world.deserted()
    text = world.committed().metadata
    world.admin.alter_group_offsets(world.name, {TopicPartition(world.input, 0): OffsetAndMetadata(0, text, -1)})
    assert quarantine(world, world.worker()) == {0: "moved"}
    assert len(world.read()) == 3


def test_the_ledger_on_the_broker_is_sealed_and_ended(world: World) -> None:
    """Whoever may describe the group reads it: it must tell nothing, and end where every client stops reading."""
    world.create()
    world.produce(*rows(4))
    world.announce_and_leave()
    text = world.committed().metadata
    assert text.isascii()
    assert text.index("\0") == len(text) - 1 <= 4095
    plain = b85decode(text[1:-1])
    with pytest.raises(zlib.error):
        zlib.decompress(plain[12:])
    other = Codec.of(b"another secret")
    facts = world.worker()._transport.facts(world.input)
    with pytest.raises(LedgerError) as refused:
        other.decode(Committed(world.committed().offset, text), Place(facts.cluster_id, facts.topic_id, 0, world.name))
    assert refused.value.code == "unreadable"


def test_a_worker_that_joins_late_takes_its_share(world: World) -> None:
    world.create(2)
    early = world.worker()
    for partition in range(2):
        world.produce(*rows(4, 100 * partition), partition=partition)
    world.published(6, early)
    late = world.worker()
    world.until(lambda: len(early.state.partitions) == len(late.state.partitions) == 1, early, late)
    for partition in range(2):
        world.produce(*rows(2, 100 * partition + 50), partition=partition)
    world.at_least(9, early, late)
    early.drain()
    early._transport.close()
    world.produce(*rows(3, 300), partition=0)
    world.at_least(12, late)
    for level in ("read_committed", "read_uncommitted"):
        values = [record["v"] for record in world.read(level=level)]
        assert len(values) == len(set(values)) >= 12
    assert notes(late).quarantined == {}
