"""Why no broker answers is told in words, soon, with what to do about it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stream_anon.cli import run_command
from stream_anon.kafka.local_broker.broker import LocalBroker, free_port
from stream_anon.kafka.reachable import require_broker, why_not
from stream_anon.kafka.transport import TransportError

POLICY = """
version: 1
name: visits
secret: a secret only for the tests, of no value
attributes:
  sex: {{role: quasi_identifier, type: category, hierarchy: {{kind: flat, values: [f, m]}}}}
privacy: [{{model: k_anonymity, k: 2}}]
stream: {{max_delay: {{time: 5s}}}}
kafka: {{bootstrap: "127.0.0.1:{port}", group: g, input: in, output: out, client: {client}}}
"""


@pytest.fixture
def rude() -> Iterator[int]:
    """A port that hangs up on everybody."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        threading.Thread(target=hang_up, daemon=True).start()
        yield server.getsockname()[1]


def test_a_port_that_is_no_broker(rude: int) -> None:
    assert "nothing listens there: start the broker" in str(why_not(f"127.0.0.1:{free_port()}", {}))
    assert "it hangs up: is this port Kafka's" in str(why_not(f"127.0.0.1:{rude}", {}))
    assert "it does not speak TLS" in str(why_not(f"127.0.0.1:{rude}", {"security.protocol": "ssl"}))
    for address in ("nonsense", "host:", "127.0.0.1:port"):
        assert "write HOST:PORT" in str(why_not(address, {}))
    assert "this name is not known" in str(why_not("no-such-host.invalid:9092", {}))


def test_plain_and_encrypted_ports_are_told_apart(local_broker: LocalBroker) -> None:
    plain, encrypted = local_broker.bootstrap, local_broker.sasl_bootstrap
    assert why_not(plain, {}) is None
    assert why_not(f"127.0.0.1:{free_port()},{plain}", {}) is None, "one that answers is enough"
    assert "it speaks TLS: set security.protocol" in str(why_not(encrypted, {}))
    assert "it does not speak TLS" in str(why_not(plain, {"security.protocol": "SASL_SSL"}))
    assert "its certificate is not trusted" in str(why_not(encrypted, {"security_protocol": "SASL_SSL"}))
    trusting: dict[str, Any] = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(local_broker.certificate)}
    assert why_not(encrypted, trusting) is None
    other = encrypted.replace("localhost", "127.0.0.1")
    assert "its certificate is for another name" in str(why_not(other, trusting)) or why_not(other, trusting) is None
    assert "cannot be read" in str(why_not(encrypted, {**trusting, "ssl.ca.location": "/no/such/file"}))


def test_who_is_not_let_in_is_told_so(local_broker: LocalBroker) -> None:
    options: dict[str, Any] = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(local_broker.certificate),
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": local_broker.user,
        "sasl.password": local_broker.password,
    }
    address = local_broker.sasl_bootstrap
    assert why_not(address, options) is None
    for wrong in ({"sasl.password": "SECRET"}, {"sasl_username": "SECRET"}):
        told = str(why_not(address, {**options, **wrong}))
        assert "refuses the user or the password" in told
        assert "SECRET" not in told
    assert why_not(address, {**options, "sasl.mechanism": "PLAIN"}) is None
    assert "refuses the user" in str(why_not(address, {**options, "sasl.mechanism": "PLAIN", "sasl.password": "x"}))
    unknown = str(why_not(address, {**options, "sasl.mechanism": "OTHER"}))
    assert "does not know sasl.mechanism OTHER: it knows " in unknown
    assert "SCRAM-SHA-256" in unknown


def test_a_broker_that_is_only_starting_is_waited_for() -> None:
    port = free_port()
    opened: list[socket.socket] = []
    opening = threading.Timer(0.5, lambda: opened.append(socket.create_server(("127.0.0.1", port))))
    opening.start()
    with pytest.raises(TransportError, match=r"does not answer|hangs up"):  # there, and mute
        require_broker(f"127.0.0.1:{port}", {}, patience=1.0)
    opened[0].close()


@pytest.mark.parametrize("command", ["run", "topics", "doctor"])
def test_commands_tell_it_within_ten_seconds(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY.format(port=free_port(), client="auto"))
    begun = time.monotonic()
    assert run_command([command, "-p", str(tmp_path / "policy.yaml")]) == 1
    told = capsys.readouterr().err
    assert "nothing listens there: start the broker, or mend kafka.bootstrap" in told
    assert time.monotonic() - begun < 10
