"""A broker that takes connections and never answers: whatever the client asks, its worker ends, and soon."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from stream_anon.kafka.clients import client_of
from stream_anon.kafka.clients.kafka_python.topics import await_topics
from stream_anon.kafka.local_broker.broker import LocalBroker
from stream_anon.kafka.transport import Committed, Placed, TransportError
from stream_anon.kafka.watchdog import Watchdog


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.create_topics([NewTopic(name, 1, 1) for name in ("in", "out")])
        await_topics(admin, ["in", "out"])
        admin.close()
        yield broker


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
@pytest.mark.parametrize("step", ["write", "send_offsets", "commit"])
def test_a_step_of_a_transaction_that_is_not_answered_is_noticed(broker: LocalBroker, client: str, step: str) -> None:
    told, ended = threading.Event(), list[str]()
    watchdog = Watchdog(2.0, lambda call: (ended.append(call), told.set())[0])
    transport = client_of(client).transport(
        broker.bootstrap, f"{client}-{step}", "in", transactional_id=f"{client}-{step}", watchdog=watchdog
    )
    while (member := transport.poll(0.1, 1).membership) is None:
        assert not ended
    transport.begin()
    transport.write([Placed("out", 0, b"key", b"value")])
    take = {
        "write": lambda: transport.write([Placed("out", 0, b"key", b"other")]),
        "send_offsets": lambda: transport.send_offsets({0: Committed(0, "ledger")}, member),
        "commit": transport.commit,
    }[step]

    def try_it() -> None:
        with contextlib.suppress(TransportError):
            take()

    process = broker.pid
    assert process is not None
    os.kill(process, signal.SIGSTOP)
    try:
        thread = threading.Thread(target=try_it)
        thread.start()
        assert told.wait(10), "nobody noticed"
        assert ended == [step]
    finally:
        os.kill(process, signal.SIGCONT)
    thread.join(60)
    transport.close()
