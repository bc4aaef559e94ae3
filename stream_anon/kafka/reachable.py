"""Tell within seconds, in words, why no broker answers: clients go on trying for half a minute and name no cause."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from stream_anon.kafka.option_names import dotted
from stream_anon.kafka.sign_in import why_refused
from stream_anon.kafka.transport import TransportError

PATIENCE = 6.0
"""Seconds for a broker that is only starting."""

_ANSWER = 2.0  # seconds for one address to answer
_PAUSE = 0.5
_ASK = bytes.fromhex("0000000d 0012 0000 00000001 0003 6f6e65")  # which versions of its requests it knows
_ALERT = 0x15  # the first byte of what a port with TLS answers to plain bytes
_OTHER_HOST = (62, 64)  # OpenSSL's words for a certificate of another host, or address
_TRUST = "ssl.ca.location in kafka.options names whom to trust"


def require_broker(bootstrap: str, options: Mapping[str, Any], patience: float = PATIENCE) -> None:
    """Return once an address answers as the options expect; raise with the cause and the remedy if none does."""
    end = time.monotonic() + patience
    while (why := why_not(bootstrap, options)) is not None:
        if time.monotonic() > end:
            raise TransportError(f"{why}; stream-anon doctor -p POLICY asks again")
        time.sleep(_PAUSE)


def why_not(bootstrap: str, options: Mapping[str, Any]) -> str | None:
    """Return why no address answers, with the remedy, None if one does."""
    reasons = []
    for address in filter(None, map(str.strip, bootstrap.split(","))):
        reason = _trouble(address, dotted(options))
        if reason is None:
            return None
        reasons.append(f"{address}: {reason}")
    return f"no broker answers: {'; '.join(reasons[:3])}" if reasons else "kafka.bootstrap names no address: HOST:PORT"


def _trouble(address: str, options: Mapping[str, Any]) -> str | None:
    """Return what keeps one address from being used."""
    host, _, port = address.rpartition(":")
    host = host.rpartition("://")[2].strip("[]")
    if not host or not port.isdigit():
        return "this is no address: write HOST:PORT in kafka.bootstrap"
    protocol = str(options.get("security.protocol", "")).upper()
    try:
        with socket.create_connection((host, int(port)), timeout=_ANSWER) as connection:
            if protocol.endswith("SSL"):
                return _no_tls(connection, host, options, protocol == "SASL_SSL")
            reason = _no_kafka(connection)
        if reason is None and protocol == "SASL_PLAINTEXT":
            with socket.create_connection((host, int(port)), timeout=_ANSWER) as connection:
                return _no_entry(connection, options)
        return reason
    except socket.gaierror:
        return "this name is not known: is kafka.bootstrap right, and does this machine know the host?"
    except ConnectionRefusedError:
        return "nothing listens there: start the broker, or mend kafka.bootstrap"
    except (OSError, OverflowError) as error:
        kind = "does not answer" if isinstance(error, TimeoutError) else type(error).__name__
        return f"{kind}: is it reached from here (network, firewall)? else mend kafka.bootstrap"


def _no_entry(connection: socket.socket, options: Mapping[str, Any]) -> str | None:
    """Return why the user is not let in; what cannot be understood here is left to the client."""
    try:
        return why_refused(connection, options)
    except (OSError, ValueError, KeyError, struct.error):
        return None


def _no_tls(connection: socket.socket, host: str, options: Mapping[str, Any], user: bool) -> str | None:
    """Return why the port cannot be spoken to with TLS, or why the user is not let in."""
    trusted = options.get("ssl.ca.location", options.get("ssl.cafile"))
    context = ssl.create_default_context()
    if trusted is not None:
        try:
            context.load_verify_locations(trusted)
        except OSError as error:
            return f"the file that ssl.ca.location names cannot be read ({type(error).__name__})"
    checks = {"ssl.endpoint.identification.algorithm": "none", "ssl.check.hostname": "false"}
    context.check_hostname = all(str(options.get(name, "")).lower() != off for name, off in checks.items())
    if str(options.get("enable.ssl.certificate.verification", "")).lower() == "false":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with suppress(OSError, ValueError):  # a client's certificate that cannot be read is told by the client
        if (own := options.get("ssl.certificate.location", options.get("ssl.certfile"))) is not None:
            context.load_cert_chain(own, options.get("ssl.key.location", options.get("ssl.keyfile")))
    try:
        secure = context.wrap_socket(connection, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in _OTHER_HOST:
            return "its certificate is for another name: write that one in kafka.bootstrap"
        return f"its certificate is not trusted: {_TRUST}"
    except (ssl.SSLError, ConnectionError, TimeoutError):
        return "it does not speak TLS: use another port, or another security.protocol in kafka.options"
    with secure:
        return _no_entry(secure, options) if user else None


def _no_kafka(connection: socket.socket) -> str | None:
    """Return why the port cannot be spoken to in plain."""
    connection.sendall(_ASK)
    try:
        answer = connection.recv(4)
    except ConnectionError:
        answer = b""
    if answer[:1] == bytes([_ALERT]):
        return f"it speaks TLS: set security.protocol to SSL or SASL_SSL in kafka.options; {_TRUST}"
    if not answer:
        return "it hangs up: is this port Kafka's, and does it speak TLS (security.protocol in kafka.options)?"
    return None
