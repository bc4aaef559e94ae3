"""How a policy's messages are read and written: what the `format` and the `registry` of its `kafka` part say."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from stream_anon.core.decode import Decoder, Payload, Reader
from stream_anon.core.gate import Group
from stream_anon.core.publish import encode_all
from stream_anon.core.record_template import writable
from stream_anon.core.schema import Schema as PolicySchema
from stream_anon.errors import StreamAnonError
from stream_anon.formats.messages import json_schema
from stream_anon.formats.messages.avro.reading import avro_messages
from stream_anon.formats.messages.avro.writing import AvroWriter
from stream_anon.formats.messages.avro.writing import output_schema as avro_schema
from stream_anon.formats.messages.json_schema import JsonSchemaWriter
from stream_anon.formats.messages.protobuf.reading import ProtoMessages
from stream_anon.formats.messages.protobuf.writing import ProtoWriter
from stream_anon.formats.messages.protobuf.writing import output_schema as proto_schema
from stream_anon.formats.messages.reader import WAIT, Compile, JsonMessages, MessageReader
from stream_anon.formats.messages.registry import Access, Registry, Schema, basic
from stream_anon.policy.settings import KafkaSettings, RegistrySettings

KINDS = {"avro": "AVRO", "protobuf": "PROTOBUF", "json_schema": "JSON"}
"""The registry's word for each format."""

AT_ONCE = 2.0
"""Seconds within which a registry has to answer a question that nobody has to wait for."""

REMEDY = "change the policy back, name another output topic, or relax the compatibility of the subject"
"""What helps against an output whose schema would break its subject."""

_COMPILERS: dict[str, Compile] = {
    "AVRO": avro_messages,
    "PROTOBUF": ProtoMessages,
    "JSON": lambda schema, types: JsonMessages(types),
}


class Writer(Protocol):
    """The interface of a writer of groups as messages."""

    def write(self, groups: Sequence[Group]) -> Iterable[list[bytes]]:
        """Write the records of each group: the same bytes for the same members, policy, secret and schema."""

    def writable(self, values: Sequence[Any]) -> bool:
        """Tell whether the published values of one row can be written."""


class JsonWriter:
    """A writer of plain JSON, without a schema."""

    write = staticmethod(encode_all)
    writable = staticmethod(writable)


_WRITERS: Mapping[str, tuple[Callable[[PolicySchema], Schema], Callable[[PolicySchema, int], Writer]]] = {
    "AVRO": (avro_schema, AvroWriter),
    "PROTOBUF": (proto_schema, ProtoWriter),
    "JSON": (json_schema.output_schema, JsonSchemaWriter),
}


@dataclass(frozen=True, slots=True)
class Output:
    """What is to be registered for a policy's output: a subject and the schema of its records."""

    subject: str
    schema: Schema


class Messages:
    """The messages of one policy. `wait` is how long a call waits for schemas, None for as long as it takes.

    `once`: a registry that does not answer at once is taken for away.
    """

    def __init__(self, schema: PolicySchema, wait: float | None = WAIT, once: bool = False) -> None:
        kafka = schema.policy.kafka
        self._schema, self._kafka, self._wait = schema, kafka, wait
        self.registry: Registry | None = None
        if kafka is not None and kafka.registry is not None:
            access = access_of(kafka.registry)
            self.registry = (
                Registry(replace(access, timeout=min(access.timeout, AT_ONCE)), rounds=1)
                if once
                else (Registry(access))
            )
        self._reader: MessageReader | None = None

    def reader(self, types: Mapping[str, str]) -> Reader:
        """Return what reads the declared fields of messages, given their types by name."""
        if self.registry is None or self._kafka is None or self._kafka.format == "json":
            return Decoder(types)
        wanted = self._kafka.format
        compilers = _COMPILERS if wanted == "auto" else {KINDS[wanted]: _COMPILERS[KINDS[wanted]]}
        self._reader = MessageReader(types, self.registry, compilers, wanted == "auto", self._wait)
        return self._reader

    def learn(self, payloads: Sequence[Payload]) -> None:
        """Fetch schemas that messages name and that are not known yet; raise `RegistryAwayError` if it cannot be."""
        if self._reader is not None:
            self._reader.learn(payloads)

    def output(self) -> Output | None:
        """Return the schema of the output and its subject, None if it is plain JSON.

        With `auto` the output is in the format of the newest schema that is registered for the input.
        """
        if self.registry is None or self._kafka is None or self._kafka.format == "json":
            return None
        kind = KINDS.get(self._kafka.format)
        if kind is None:
            found = self.registry.latest(f"{self._kafka.input}-value")
            kind = None if found is None else found.kind
        if kind is None or kind not in _WRITERS:
            return None
        made = _WRITERS[kind][0](self._schema)
        return Output(_subject(self._kafka, self._schema, made), made)

    def breaks(self) -> tuple[str, str] | None:
        """Return the subject that the schema of the output would break, and why; None if it would break none."""
        output = self.output()
        if output is None or self.registry is None:
            return None
        broken = self.registry.breaks(output.subject, output.schema)
        return None if broken is None else (output.subject, broken[0][:200])

    def writer(self) -> Writer:
        """Register the schema of the output, if it has one, and return a writer of its messages."""
        output = self.output()
        if output is None or self.registry is None or self._kafka is None or self._kafka.registry is None:
            return JsonWriter()
        if (broken := self.breaks()) is not None:
            subject, why = broken
            raise StreamAnonError(
                f"the schema of this policy's output may not follow the newest one of {subject} ({why}): {REMEDY}"
            )
        if self._kafka.registry.register_schema:
            number = self.registry.register(output.subject, output.schema)
        else:
            found = self.registry.registered(output.subject, output.schema)
            if found is None:
                raise StreamAnonError(
                    f"the schema of the output is not registered under {output.subject}, "
                    "and `register_schema` is false: let a worker register it once with `register_schema: true`"
                )
            number = found
        return _WRITERS[output.schema.kind][1](self._schema, number)


def access_of(settings: RegistrySettings) -> Access:
    """Return how the registry of a policy is reached."""
    urls = [settings.url] if isinstance(settings.url, str) else settings.url
    credentials = None
    if settings.token is not None:
        credentials = f"Bearer {settings.token.get_secret_value()}"
    elif settings.username is not None and settings.password is not None:
        credentials = basic(settings.username, settings.password.get_secret_value())
    tls = None
    if settings.ca is not None or settings.certificate is not None:
        try:
            tls = ssl.create_default_context(cafile=settings.ca)
            if settings.certificate is not None:
                tls.load_cert_chain(settings.certificate, settings.key)
        except (OSError, ssl.SSLError) as error:
            raise StreamAnonError(f"kafka.registry: a certificate cannot be read: {error.strerror}") from None
    return Access(urls, credentials, tls, settings.timeout)


def _subject(kafka: KafkaSettings, schema: PolicySchema, made: Schema) -> str:
    assert kafka.registry is not None  # noqa: S101 - whoever asks has a registry
    record = f"stream_anon.{schema.policy.name}"
    match kafka.registry.subject:
        case "record":
            return record
        case "topic_record":
            return f"{kafka.output}-{record}"
        case _:
            return f"{kafka.output}-value"
