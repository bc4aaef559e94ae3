"""A self-signed certificate for a broker on this machine, for trials only."""

from __future__ import annotations

import datetime

from stream_anon.errors import StreamAnonError


def self_signed_store(host: str, password: str) -> tuple[bytes, bytes]:
    """Return a PKCS12 key store for `host`, and its certificate as PEM for clients to trust."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as error:
        raise StreamAnonError("TLS needs one more package: pip install 'stream-anon[kafka]'") from error
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encryption = serialization.BestAvailableEncryption(password.encode())
    store = pkcs12.serialize_key_and_certificates(b"broker", key, certificate, None, encryption)
    return store, certificate.public_bytes(serialization.Encoding.PEM)
