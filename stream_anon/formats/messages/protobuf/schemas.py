"""Compile the text of a Protobuf schema into message classes, by protoc in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from stream_anon.errors import StreamAnonError
from stream_anon.formats.messages.reader import UnusableSchemaError
from stream_anon.formats.messages.registry import Schema

_MAIN = "stream_anon_main_schema.proto"
_META = "confluent/meta.proto"
_META_TEXT = """
syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta {
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
  repeated Rule rules = 4;
}
message Rule {
  string name = 1;
  string doc = 2;
  string expr = 3;
  string sql = 4;
}
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
"""
"""What schemas with tags import; registries bring it themselves, so that nobody refers to it."""

_SECONDS = 30.0  # that compiling may take
_DEEPEST = 20


class ProtoSchema:
    """A compiled schema: message classes by their path in the file."""

    def __init__(self, schema: Schema) -> None:
        need_protobuf()
        from google.protobuf import descriptor_pool, message_factory

        self._pool = descriptor_pool.DescriptorPool()
        files = serialized_files(schema) or compiled_files(schema)
        for file in files:
            self._pool.Add(file)
        self._file = self._pool.FindFileByName(files[-1].name)
        self._class = message_factory.GetMessageClass
        self._known: dict[tuple[int, ...], Any] = {}

    def message(self, path: tuple[int, ...]) -> Any:
        """Return the class of the message at a path; raise LookupError if there is none."""
        if path not in self._known:
            names = [*self._file.message_types_by_name.values()]
            found = None
            for number in path:
                found = names[number] if 0 <= number < len(names) else None
                if found is None:
                    raise LookupError("no message at this path")
                names = list(found.nested_types)
            self._known[path] = self._class(found)
        return self._known[path]


def serialized_files(schema: Schema) -> list[Any]:
    """Return the descriptors of a schema that was registered as such, in base 64, as some producers do; else none."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    files, texts = _standard_files(), [*schema.references, ("", schema.text)]
    for name, text in texts:
        try:
            file = FileDescriptorProto.FromString(b64decode(text, validate=True))
        except (ValueError, DecodeError):
            return []
        file.name = name or _MAIN
        files.append(file)
    return files


def _standard_files() -> list[Any]:
    """Return the descriptors of what Protobuf itself brings."""
    from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    found = []
    for module in (duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2):
        file = FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        found.append(file)
    return found


def compiled_files(schema: Schema) -> list[Any]:
    """Return the descriptors of a schema and of all it imports, those that others need first."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    with tempfile.TemporaryDirectory(prefix="stream-anon-proto-") as name:
        folder = Path(name)
        for place, text in ((_META, _META_TEXT), (_MAIN, schema.text), *schema.references):
            path = PurePosixPath(place)
            if path.is_absolute() or ".." in path.parts:
                raise UnusableSchemaError("an import outside of the schema")
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{_well_known()}", "--include_imports"]
        command += ["--include_source_info"]
        command += [f"--descriptor_set_out={folder / 'found.bin'}", _MAIN]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603
        except subprocess.TimeoutExpired:
            raise UnusableSchemaError("it takes too long to compile") from None
        if done.returncode:
            raise UnusableSchemaError("protoc cannot compile it")
        found = FileDescriptorSet()
        found.ParseFromString((folder / "found.bin").read_bytes())
        return list(found.file)


def described_fields(schema: Schema) -> Iterator[tuple[str, list[str], str]]:
    """Yield the fields of a schema's first message by dotted path, with their tags and the comments about them."""
    need_protobuf()
    try:
        files = serialized_files(schema) or compiled_files(schema)
    except UnusableSchemaError:
        return
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.Add(file)
    comments = {
        tuple(place.path): f"{place.leading_comments} {place.trailing_comments}".strip()
        for place in files[-1].source_code_info.location
    }
    extension = None
    with suppress(KeyError):
        extension = pool.FindExtensionByName("confluent.field_meta")
    if extension is not None:
        message_factory.GetMessageClass(extension.message_type)
    options = None if extension is None else message_factory.GetMessageClass(extension.containing_type)
    messages = list(pool.FindFileByName(files[-1].name).message_types_by_name.values())
    yield from _described(messages[0], "", (4, 0), (comments, options, extension)) if messages else ()


def _described(
    message: Any, path: str, place: tuple[int, ...], notes: tuple[dict[tuple[int, ...], str], Any, Any]
) -> Iterator[tuple[str, list[str], str]]:
    comments, options, extension = notes
    for number, field in enumerate(message.fields):
        meta = None
        if extension is not None:
            meta = options.FromString(field.GetOptions().SerializeToString()).Extensions[extension]
        text = comments.get((*place, 2, number), "")
        at = f"{path}{field.name}"
        yield at, list(meta.tags) if meta else [], f"{meta.doc if meta else ''} {text}".strip()
        below = field.message_type
        if below is not None and at.count(".") < _DEEPEST and below.file is message.file:
            inner = next((i for i, each in enumerate(message.nested_types) if each is below), None)
            top = next((i for i, each in enumerate(message.file.message_types_by_name.values()) if each is below), 0)
            yield from _described(below, f"{at}.", (*place, 3, inner) if inner is not None else (4, top), notes)


def _well_known() -> Path:
    import grpc_tools

    return Path(str(grpc_tools.__file__)).parent / "_proto"


def need_protobuf() -> None:
    """Raise with the command to install what Protobuf needs if it is not installed."""
    if find_spec("grpc_tools") is None or find_spec("google.protobuf") is None:
        raise StreamAnonError("Protobuf needs two packages: pip install 'stream-anon[protobuf]'")
