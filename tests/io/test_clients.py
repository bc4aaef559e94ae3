"""Which client is chosen, and how it is given Kafka's options."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from stream_anon.errors import StreamAnonError
from stream_anon.kafka import clients
from stream_anon.kafka.clients import client_of
from stream_anon.kafka.clients.confluent import feed as confluent_feed
from stream_anon.kafka.clients.confluent import options as confluent_options
from stream_anon.kafka.clients.confluent import topics as confluent_topics
from stream_anon.kafka.clients.confluent.transport import ConfluentTransport, read_token
from stream_anon.kafka.clients.kafka_python import options as kafka_options
from stream_anon.kafka.clients.kafka_python.transport import KafkaTransport
from stream_anon.kafka.local_broker.broker import free_port
from stream_anon.kafka.transport import Transport, TransportError


def only(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """As if no other client were installed."""
    find = importlib.util.find_spec
    monkeypatch.setattr(clients, "find_spec", lambda name: find(name) if name in packages else None)


def test_the_faster_client_is_taken_unless_the_policy_names_one() -> None:
    assert client_of("auto").transport is ConfluentTransport
    assert client_of("confluent-kafka").transport is ConfluentTransport
    assert client_of("kafka-python").transport is KafkaTransport


@pytest.mark.parametrize("client", [ConfluentTransport, KafkaTransport])
def test_a_client_has_every_method_of_the_contract(client: type) -> None:
    methods = {name for name, member in vars(Transport).items() if callable(member) and not name.startswith("_")}
    assert len(methods) > 15
    assert methods <= set(dir(client))


def test_what_is_installed_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "kafka")
    assert client_of("auto").name == "kafka-python"
    with pytest.raises(StreamAnonError, match=r"pip install 'stream-anon\[fast\]'"):
        client_of("confluent-kafka")
    only(monkeypatch)
    with pytest.raises(StreamAnonError, match=r"pip install 'stream-anon\[kafka\]'"):
        client_of("auto")


SPELLINGS = [
    # name in the policy, kafka-python, confluent-kafka
    ("security.protocol", "security_protocol", "security.protocol"),
    ("security_protocol", "security_protocol", "security.protocol"),
    ("ssl.ca.location", "ssl_cafile", "ssl.ca.location"),
    ("ssl_cafile", "ssl_cafile", "ssl.ca.location"),
    ("sasl.password", "sasl_plain_password", "sasl.password"),
    ("sasl_plain_username", "sasl_plain_username", "sasl.username"),
    ("fetch.max.wait.ms", "fetch_max_wait_ms", "fetch.wait.max.ms"),
    ("fetch.wait.max.ms", "fetch_max_wait_ms", "fetch.wait.max.ms"),
    ("max.request.size", "max_request_size", "message.max.bytes"),
    ("metadata.max.age.ms", "metadata_max_age_ms", "topic.metadata.refresh.interval.ms"),
]


@pytest.mark.parametrize(("name", "python", "confluent"), SPELLINGS)
def test_one_spelling_serves_both(name: str, python: str, confluent: str) -> None:
    given = kafka_options.client_options({name: "value"})
    assert any(options == {python: "value"} for options in given.values())
    assert confluent_options.client_options({name: "value"}) == {confluent: "value"}


@pytest.mark.parametrize("options", [kafka_options.client_options, confluent_options.client_options])
@pytest.mark.parametrize(
    "name", ["isolation.level", "enable_auto_commit", "group.id", "partition.assignment.strategy", "group.protocol"]
)
def test_what_the_promise_decides_cannot_be_set(options: Any, name: str) -> None:
    with pytest.raises(StreamAnonError, match="cannot be set"):
        options({name: "value"})


@pytest.mark.parametrize("kind", [KafkaTransport, ConfluentTransport])
def test_an_option_nobody_knows_is_named_without_its_value(kind: Any) -> None:
    with pytest.raises(StreamAnonError, match=r"there is no option sesion\.timeout\.ms") as told:
        kind("127.0.0.1:1", "g", "t", transactional_id="x", options={"sesion.timeout.ms": "SECRET"})
    assert "SECRET" not in str(told.value)


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
def test_a_broker_that_does_not_answer_is_told_with_a_remedy(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (confluent_feed, confluent_topics):
        monkeypatch.setattr(module, "_PATIENCE", 0.5)
    options = {"bootstrap.timeout.ms": 500} if client == "kafka-python" else {}
    nobody = f"127.0.0.1:{free_port()}"
    with pytest.raises(TransportError, match="firewall"):
        client_of(client).create_topics(nobody, {"t": 1}, options)
    with pytest.raises(TransportError, match="stream-anon doctor"):
        client_of(client).feed(nobody, "t", options)


def test_a_token_of_another_form_is_refused() -> None:
    with pytest.raises(TransportError, match="use kafka-python"):
        read_token(b"CGMDv3:1234group\0member\0")
