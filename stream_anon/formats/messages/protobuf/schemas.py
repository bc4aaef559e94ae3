"""Compile the text of a Protobuf schema into message classes, by protoc in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from base64 import b64decode
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from stream_anon.errors import StreamAnonError
from stream_anon.formats.messages.reader import UnusableSchemaError
from stream_anon.formats.messages.registry import Schema

_MAIN = "stream_anon_main_schema.proto"
_SECONDS = 30.0  # that compiling may take


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
        for place, text in ((_MAIN, schema.text), *schema.references):
            path = PurePosixPath(place)
            if path.is_absolute() or ".." in path.parts:
                raise UnusableSchemaError("an import outside of the schema")
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{_well_known()}", "--include_imports"]
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


def _well_known() -> Path:
    import grpc_tools

    return Path(str(grpc_tools.__file__)).parent / "_proto"


def need_protobuf() -> None:
    """Raise with the command to install what Protobuf needs if it is not installed."""
    if find_spec("grpc_tools") is None or find_spec("google.protobuf") is None:
        raise StreamAnonError("Protobuf needs two packages: pip install 'stream-anon[protobuf]'")
