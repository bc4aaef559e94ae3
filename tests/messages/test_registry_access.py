"""A real registry behind a guard that speaks TLS and asks for a certificate, a password or a token."""

from __future__ import annotations

import base64
import http.client
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from stream_anon.auditor.reading.schemas import Schemas
from stream_anon.errors import StreamAnonError
from stream_anon.formats.messages.messages import access_of
from stream_anon.formats.messages.registry import Registry, RegistryAwayError, RegistryError, Schema
from stream_anon.kafka.local_broker.registry import LocalRegistry
from stream_anon.policy.settings import RegistrySettings

HOME = {"type": "record", "name": "Home", "fields": [{"name": "zip", "type": "string"}]}
VISIT = {"type": "record", "name": "Visit", "fields": [{"name": "home", "type": "Home"}]}
WANTED = {"Bearer a-token", "Basic " + base64.b64encode(b"ann:a-password").decode()}


class Guard(ThreadingHTTPServer):
    """Passes requests on to a registry if they come with credentials."""

    def __init__(self, inner: str, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.inner, self.refused = urlsplit(inner), 0
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
        context.load_verify_locations(folder / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
        self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server_port}{self.inner.path}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        self.refused += 1


class _Handler(BaseHTTPRequestHandler):
    server: Guard

    def do_GET(self) -> None:
        status, answer = 401, b'{"error_code": 401}'
        if self.headers.get("Authorization") in WANTED:
            inner = http.client.HTTPConnection(str(self.server.inner.hostname), self.server.inner.port, timeout=20)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
            inner.request(self.command, self.path, body, {"Content-Type": self.headers["Content-Type"]} if body else {})
            found = inner.getresponse()
            status, answer = found.status, found.read()
            inner.close()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        pass


def certificates(folder: Path) -> None:
    """Write an authority, and a server and a client of its own."""
    issuer_key: Any = None
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
    now = datetime.now(UTC)
    for name in ("ca", "server", "client"):
        key = ec.generate_private_key(ec.SECP256R1())
        issuer_key = issuer_key or key
        made = x509.CertificateBuilder().issuer_name(issuer).public_key(key.public_key())
        made = made.subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        made = made.serial_number(x509.random_serial_number())
        made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        made = made.add_extension(x509.BasicConstraints(ca=name == "ca", path_length=None), critical=True)

        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        made = made.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        signed = made.sign(issuer_key, hashes.SHA256())
        (folder / f"{name}.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        text = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (folder / f"{name}.key").write_bytes(text)


@pytest.fixture
def guard(local_registry: LocalRegistry, tmp_path: Path) -> Iterator[Guard]:
    certificates(tmp_path)
    with Guard(local_registry.url, tmp_path) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def settings(guard: Guard, folder: Path, **more: Any) -> RegistrySettings:
    own = {"certificate": str(folder / "client.pem"), "key": str(folder / "client.key")}
    closed = "https://127.0.0.1:9/apis/ccompat/v7"
    data = {"url": [closed, guard.url], "ca": str(folder / "ca.pem"), **own, **more}
    return RegistrySettings.model_validate({name: value for name, value in data.items() if value is not None})


@pytest.mark.parametrize("credentials", [{"token": "a-token"}, {"username": "ann", "password": "a-password"}])
def test_who_shows_certificate_and_credentials_is_let_in(
    guard: Guard, tmp_path: Path, credentials: dict[str, str], name: str
) -> None:
    """Of two addresses the first is closed; what is read refers to another schema."""
    wanted = settings(guard, tmp_path, **credentials)
    registry = Registry(access_of(wanted))
    registry.register(f"{name}-home", Schema("AVRO", json.dumps(HOME)))
    reference = {"name": "Home", "subject": f"{name}-home", "version": 1}
    body = json.dumps({"schema": json.dumps(VISIT), "references": [reference]})
    outside = http.client.HTTPConnection(str(guard.inner.hostname), guard.inner.port, timeout=20)
    header = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    outside.request("POST", f"{guard.inner.path}/subjects/{name}-value/versions", body, header)
    number = json.load(outside.getresponse())["id"]
    outside.close()
    found = registry.schema(number)
    assert found is not None
    assert json.loads(found.text)["name"] == "Visit"
    assert [(part, json.loads(text)["name"]) for part, text in found.references] == [("Home", "Home")]
    spelled = wanted.model_dump(exclude_none=True) | credentials
    message = b"\0" + number.to_bytes(4, "big") + b"\x06021"
    assert json.loads(Schemas(spelled, {}).raw(message)) == {"home": {"zip": "021"}}, "the auditor reads it, too"


def test_who_does_not_is_told_so_without_the_secret(guard: Guard, tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"refuses the credentials \(status 401\)") as refused:
        Registry(access_of(settings(guard, tmp_path, token="another-token"))).schema(1)
    assert "another-token" not in str(refused.value)
    without = settings(guard, tmp_path, token="a-token", certificate=None, key=None)
    with pytest.raises(RegistryAwayError, match="does not answer"):
        Registry(access_of(without), lambda _: None).schema(1)
    unknown = settings(guard, tmp_path, token="a-token", ca=None)
    with pytest.raises(RegistryAwayError, match="SSLCertVerificationError"):
        Registry(access_of(unknown), lambda _: None).schema(1)
    (tmp_path / "client.pem").unlink()
    with pytest.raises(StreamAnonError, match="a certificate cannot be read"):
        access_of(settings(guard, tmp_path, token="a-token"))
