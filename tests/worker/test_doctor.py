"""What doctor finds on a real broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from broker_world import World, each_client
from kafka import KafkaProducer

from stream_anon.kafka import doctor as kafka_doctor
from stream_anon.kafka.clients import client_of
from stream_anon.kafka.doctor import Doctor, Finding


@pytest.fixture
def world(bootstrap: str, name: str, client: str) -> Iterator[World]:
    made = World(bootstrap, name, client).create()
    yield made
    made.close()


def open_transactions(world: World) -> Finding:
    broker = client_of(world.client).probe(world.bootstrap, world.name, {})
    found = Doctor(broker, world.name, world.input, world.output, None).examine()
    answer = next(finding for finding in found if finding.question == "open transactions")
    broker.close()
    return answer


@each_client
def test_a_transaction_that_stays_open_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_doctor, "LONGEST_TRANSACTION", 1.0)
    assert open_transactions(world).good
    producer = KafkaProducer(bootstrap_servers=world.bootstrap, transactional_id=f"{world.name}-stays")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(world.output, value=b"never ended")
    producer.flush()
    found = open_transactions(world)
    assert not found.good
    assert "partition 0, from offset 0" in found.detail
    assert "kafka-transactions.sh" in found.remedy
    producer.abort_transaction()
    producer.close()
    assert open_transactions(world).good
