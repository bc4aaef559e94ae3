"""`broker` on a port that somebody has: nothing is created there, and what is wrong is said."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from kafka import KafkaAdminClient

from stream_anon.kafka.local_broker import broker as module
from stream_anon.kafka.local_broker.broker import BrokerError, LocalBroker

POLICY = """
version: 1
name: taken
secret: a secret only for the tests, of no value
attributes: {{age: {{role: quasi_identifier, type: integer, hierarchy: {{kind: interval, range: [0, 99], snap: [5]}}}}}}
privacy: [{{model: k_anonymity, k: 3}}]
kafka: {{bootstrap: "127.0.0.1:{port}", group: g, input: {name}-in, output: {name}-out}}
"""


def topics(bootstrap: str) -> set[str]:
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        return set(admin.list_topics())


def test_the_command_leaves_somebody_elses_kafka_alone(local_broker: LocalBroker, name: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.format(port=local_broker.port, name=name))
    command = [sys.executable, "-m", "stream_anon", "broker", "-p", str(policy), "--port", str(local_broker.port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        _, talk = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        _, talk = process.communicate(timeout=60)
    assert process.returncode == 1, talk
    assert "--port" in talk
    assert "listens on" not in talk
    assert not [topic for topic in topics(local_broker.bootstrap) if topic.startswith(name)]


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_port_that_anything_listens_on_is_refused(address: str, tmp_path: Path) -> None:
    with closing(socket.create_server((address, 0))) as other:
        local = LocalBroker(tmp_path / "data", port=other.getsockname()[1])
        with pytest.raises(BrokerError, match=re.escape(str(local.port))):
            local.start()
        assert local.pid is None


def test_a_port_taken_at_the_last_moment_is_noticed(
    local_broker: LocalBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else's Kafka answers there; ours cannot listen and ends, or has another id as long as it lives."""
    monkeypatch.setattr(module, "refuse_a_taken_port", lambda port: None)
    local = LocalBroker(tmp_path / "data", port=local_broker.port)
    with pytest.raises(BrokerError, match="another Kafka answers"):
        local.start(timeout=60)
    assert local.pid is None


def test_the_id_is_that_of_the_storage(local_broker: LocalBroker) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=local_broker.bootstrap)) as admin:
        assert admin.describe_cluster()["cluster_id"] == local_broker.cluster_id


def test_who_fetches_the_jars_is_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that begin at the same time, as those of a test run do, would leave jars out of each other's."""
    import fcntl

    import jgo

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    asked = []

    def build(*_: object, **__: object) -> SimpleNamespace:
        (lock,) = tmp_path.glob("*.lock")
        with lock.open("a") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        asked.append(True)
        return SimpleNamespace(all_jars=["one.jar"])

    monkeypatch.setattr(jgo, "build", build)
    assert module.java_and_jars()[1] == "one.jar"
    assert asked == [True]
