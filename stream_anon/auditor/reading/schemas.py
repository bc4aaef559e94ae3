"""Turn messages behind a schema registry into JSON records, by the auditor's own reading of them."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Set
from datetime import date, time
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

import msgspec

from stream_anon.auditor.policy import Rules
from stream_anon.errors import StreamAnonError

_SECONDS = 10.0
_Decode = Callable[[bytes], Any]


class Schemas:
    """The schemas of a policy's registry. Without one, messages are what they are."""

    def __init__(self, registry: Mapping[str, Any], names: Mapping[str, str], declared: Set[str] = frozenset()) -> None:
        self._registry, self._names, self._declared = registry, names, declared
        self._known: dict[bytes, _Decode] = {}

    @classmethod
    def of(cls, rules: Rules | None) -> Schemas:
        """Return the schemas that a policy's messages name; names are those that schemas allow, and the policy's."""
        if rules is None or rules.kafka is None:
            return cls({}, {})
        own = {*rules.quasi, *rules.sensitive, *rules.plain}
        names = {re.sub(r"[^A-Za-z0-9_]", "_", part): part for name in own for part in name.split(".")}
        declared = {part for name in (*own, *rules.hidden, rules.subject or "") for part in name.split(".")}
        return cls(rules.kafka.registry, names, declared)

    def published(self, value: bytes) -> bytes:
        """Return a published message as JSON: a pair of ends as a list, names as the policy spells them."""
        record = self._record(value)
        return value if record is None else _json(self._shaped(record))

    def raw(self, value: bytes) -> bytes:
        """Return a raw message as JSON."""
        record = self._record(value)
        return value if record is None else _json(record)

    def _record(self, value: bytes) -> Any:
        if not self._registry or not value.startswith(b"\0") or len(value) < 5:
            return None
        head = value[:5]
        if head not in self._known:
            self._known[head] = self._decoder(int.from_bytes(head[1:], "big"))
        try:
            return self._known[head](value[5:])
        except Exception:  # whatever a library makes of broken bytes: the record counts as no JSON
            return None

    def _shaped(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._shaped(each) for each in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {"low", "high"}:
            return [value["low"], value["high"]]
        return {self._names.get(name, name): self._shaped(below) for name, below in value.items()}

    def _decoder(self, number: int) -> _Decode:
        found = self._ask(f"/schemas/ids/{number}")
        if not found:
            return lambda body: None
        kind, text = found.get("schemaType") or "AVRO", str(found["schema"])
        others = [self._ask(f"/subjects/{r['subject']}/versions/{r['version']}") for r in found.get("references") or ()]
        names = [str(r["name"]) for r in found.get("references") or ()]
        references = dict(zip(names, [str(other["schema"]) for other in others], strict=True))
        if kind == "JSON":
            return lambda body: json.loads(body)
        return _avro(text, references, self._declared) if kind == "AVRO" else _protobuf(text, references)

    def _ask(self, path: str) -> dict[str, Any]:
        settings = self._registry
        urls = settings["url"] if isinstance(settings["url"], list) else [settings["url"]]
        headers = {"Accept": "application/json"}
        if settings.get("token"):
            headers["Authorization"] = f"Bearer {settings['token']}"
        elif settings.get("username"):
            both = f"{settings['username']}:{settings.get('password', '')}".encode()
            headers["Authorization"] = f"Basic {b64encode(both).decode()}"
        context = ssl.create_default_context(cafile=settings.get("ca"))
        if settings.get("certificate"):
            context.load_cert_chain(settings["certificate"], settings.get("key"))
        for url in urls:
            request = urllib.request.Request(url.rstrip("/") + path, headers=headers)  # noqa: S310 - the policy's
            try:
                with urllib.request.urlopen(request, timeout=_SECONDS, context=context) as answer:  # noqa: S310
                    found = json.load(answer)
            except HTTPError as error:
                if error.code == 404:
                    return {}
            except (URLError, OSError, ValueError):
                continue
            else:
                if isinstance(found, dict):
                    return found
        raise StreamAnonError(f"the schema registry has no answer for {path}: is kafka.registry of the policy right?")


def _json(record: Any) -> bytes:
    return msgspec.json.encode(record, enc_hook=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, date | time):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else str(value)


def _avro(text: str, references: Mapping[str, str], declared: Set[str]) -> _Decode:
    try:
        import fastavro
    except ImportError:
        raise StreamAnonError("to audit Avro: pip install 'stream-anon[avro]'") from None
    named: dict[str, Any] = {}
    for other in references.values():
        fastavro.parse_schema(_old_names(json.loads(other), declared), named)
    schema = fastavro.parse_schema(_old_names(json.loads(text), declared), named)

    def decode(body: bytes) -> Any:
        file = BytesIO(body)
        record = fastavro.schemaless_reader(file, schema, None)
        return record if file.tell() == len(body) else None

    return decode


def _old_names(part: Any, declared: Set[str]) -> Any:
    """Return a schema whose renamed fields have their declared names again, which are among their aliases."""
    if isinstance(part, list):
        return [_old_names(each, declared) for each in part]
    if not isinstance(part, dict):
        return part
    part = {word: _old_names(below, declared) if word != "aliases" else below for word, below in part.items()}
    fields = part.get("fields") or []
    names = [field["name"] for field in fields]
    for field in fields:
        old = [name for name in field.get("aliases", ()) if name in declared and name not in names]
        if old and field["name"] not in declared:
            field["name"] = old[0]
    return part


def _protobuf(text: str, references: Mapping[str, str]) -> _Decode:
    try:
        from google.protobuf import descriptor_pool, message_factory
        from google.protobuf.descriptor_pb2 import FileDescriptorProto
    except ImportError:
        raise StreamAnonError("to audit Protobuf: pip install 'stream-anon[protobuf]'") from None
    pool = descriptor_pool.DescriptorPool()
    try:
        files = [FileDescriptorProto.FromString(b64decode(text, validate=True))]
    except ValueError:
        files = _compiled(text, references)
    for file in files:
        pool.Add(file)
    last = pool.FindFileByName(files[-1].name)

    def decode(body: bytes) -> Any:
        path, at = _path(body)
        descriptor, among = None, list(last.message_types_by_name.values())
        for number in path:
            descriptor = among[number]
            among = list(descriptor.nested_types)
        message = message_factory.GetMessageClass(descriptor)()
        message.ParseFromString(body[at:])
        return _fields(message)

    return decode


def _compiled(text: str, references: Mapping[str, str]) -> list[Any]:
    import grpc_tools
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for place, content in {**references, "audited.proto": text}.items():
            target = (folder / place).resolve()
            if folder.resolve() not in target.parents:
                raise StreamAnonError("a schema imports a file outside of itself")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8")
        own = Path(str(grpc_tools.__file__)).parent / "_proto"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{own}", "--include_imports"]
        command += [f"--descriptor_set_out={folder}/found", "audited.proto"]
        if subprocess.run(command, capture_output=True, timeout=60, check=False).returncode:  # noqa: S603
            raise StreamAnonError("a schema of Protobuf cannot be compiled")
        return list(FileDescriptorSet.FromString((folder / "found").read_bytes()).file)


def _path(body: bytes) -> tuple[list[int], int]:
    numbers: list[int] = []
    at = 0
    while not numbers or len(numbers) <= numbers[0]:
        shift = number = 0
        while True:
            byte = body[at]
            number |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                break
        numbers.append((number >> 1) ^ -(number & 1))
    return (numbers[1:] or [0]), at


def _fields(message: Any) -> Any:
    """Return a message as plain data: what is absent as null, a union of scalars as the one that is there."""
    kinds = message.DESCRIPTOR.oneofs_by_name.get("kind")
    if kinds is not None and message.DESCRIPTOR.name == "Scalar":
        chosen = message.WhichOneof("kind")
        return None if chosen is None else getattr(message, chosen)
    if message.DESCRIPTOR.full_name == "google.protobuf.Timestamp":
        return message.ToJsonString()
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.has_presence and not message.HasField(field.name):
            found[field.name] = None
        elif field.type == field.TYPE_MESSAGE:
            found[field.name] = _fields(value) if field.has_presence else [_fields(each) for each in value]
        elif field.type == field.TYPE_ENUM and isinstance(value, int):
            found[field.name] = field.enum_type.values_by_number[value].name
        elif isinstance(value, str | int | float | bool | bytes):
            found[field.name] = value
        else:
            found[field.name] = list(value)
    return found
