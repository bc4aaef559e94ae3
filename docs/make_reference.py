"""Writes docs/reference.md from the code: commands, policy, codes, metrics. A test holds the two together.

make reference
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import stream_anon
from stream_anon.cli import COMMANDS, app
from stream_anon.core.decode import Reject
from stream_anon.core.fields import PUBLISH_KINDS
from stream_anon.core.hierarchy import HIERARCHIES
from stream_anon.core.privacy import MODELS
from stream_anon.grammar.fields import Settings
from stream_anon.grammar.registry import Registry
from stream_anon.observe.metrics import Metrics
from stream_anon.policy import attributes, settings
from stream_anon.policy.policy import Policy
from stream_anon.worker.unusable import UNUSABLE

REJECTS = {
    Reject.TOMBSTONE: "the record has no value",
    Reject.TOO_LARGE: "the record is longer than the limit",
    Reject.NOT_JSON: "the bytes are not JSON",
    Reject.REGISTRY_FRAMING: "not JSON; it begins with a zero byte, as the framing of a schema registry does",
    Reject.NOT_FRAMED: "the policy's `kafka.format` needs messages that name their schema, and this one does not",
    Reject.UNKNOWN_SCHEMA: "it names a schema, or a message of it, that the registry does not have",
    Reject.UNUSABLE_SCHEMA: "its schema is of another format than `kafka.format`, or cannot be used",
    Reject.NOT_BY_SCHEMA: "its bytes are not what its schema says",
    Reject.NOT_UTF8: "a line of a CSV file that is not UTF-8",
    Reject.NOT_CSV: "a line that breaks the rules of CSV: a quote left open, text behind a closing one, a huge cell",
    Reject.CELL_COUNT: "a line of a CSV file with more or fewer cells than its header",
    Reject.NOT_OBJECT: "the JSON is not an object",
    Reject.WRONG_TYPE: "a declared field has a value of another type, or one that cannot be changed as `publish` says",
    Reject.MISSING: "a declared field is absent, and the policy does not say `missing: leaf` (`null`, in `publish`)",
    Reject.UNKNOWN: "a value has no place in its hierarchy, and the policy does not say `unknown: leaf`",
    Reject.BAD_GUARD: "the guarding node does not stand above the record's value",
    Reject.BAD_PSF: "the wish is none of 1, 0 and -1",
    Reject.UNPLACEABLE: "a model says that no group can ever hold this record",
}
OF_A_WORKER = {
    "oversized": "of a worker: the output topic does not take a record of this size",
    UNUSABLE: "of a worker: the record made the program fail; a defect, please report the error in the log",
}
PARTS = {
    "Attributes": attributes,
    "What is done to a field": PUBLISH_KINDS,
    "Hierarchies": HIERARCHIES,
    "Privacy models": MODELS,
    "Stream and Kafka": settings,
}


def reference() -> str:
    """Return the whole text."""
    lines = ["# Reference", "", "Made from the code by `docs/make_reference.py`; do not edit.", ""]
    for part in (commands, policy, rejects, findings, metrics):
        lines += [*part(), ""]
    return "\n".join(lines)


def commands() -> Iterator[str]:
    """Every command with its arguments and options."""
    yield "## Commands"
    group: Any = typer.main.get_command(app)
    for name in COMMANDS:
        command = group.get_command(typer.Context(group), name)
        told = _help_of(getattr(import_module(f"stream_anon.cli.{name}"), name))
        yield from ("", f"### stream-anon {name}", "", (command.help or "").split("\n\n")[0].replace("\n", " "), "")
        yield "| argument or option | meaning | default |"
        yield "|---|---|---|"
        for parameter in command.params:
            if parameter.name == "help":
                continue
            words = " ".join(parameter.opts) if parameter.param_type_name == "option" else parameter.name.upper()
            default = "" if parameter.default in (None, False) or callable(parameter.default) else parameter.default
            shown = f"`{default}`" if default != "" and not parameter.required else ""
            yield f"| `{words}` | {_cell(told.get(parameter.name, ''))} | {shown} |"


def _help_of(callback: Any) -> dict[str, str]:
    """Return the help of each parameter from the code: not every version of typer passes on that of arguments."""
    hints = get_type_hints(callback, include_extras=True)
    marks = {name: mark for name, hint in hints.items() for mark in getattr(hint, "__metadata__", ())}
    return {name: mark.help for name, mark in marks.items() if getattr(mark, "help", None)}


def policy() -> Iterator[str]:
    """Every word of the policy file."""
    yield "## Policy"
    yield from _model(Policy)
    for title, part in PARTS.items():
        yield from ("", f"### {title}")
        kinds = _kinds_of(part) if isinstance(part, Registry) else _classes_of(part)
        for kind in dict.fromkeys(kinds):
            yield from _model(kind)


def _classes_of(module: ModuleType) -> Iterator[type[BaseModel]]:
    """Yield the settings that a module defines."""
    for kind in vars(module).values():
        own = isinstance(kind, type) and issubclass(kind, Settings) and kind.__module__ == module.__name__
        if own and not kind.__subclasses__():  # what others are based on is chosen by nobody
            yield kind


def _kinds_of(registry: Registry[Any]) -> Iterator[type[BaseModel]]:
    """Yield the kinds of this package, each after the settings that it has inside."""
    for kind in registry:
        if kind.__module__.startswith("stream_anon."):
            yield from (part for field in kind.model_fields.values() for part in _inside(field.annotation))
            yield kind


def _inside(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for argument in get_args(kind):
        yield from _inside(argument)


def _model(model: type[BaseModel]) -> Iterator[str]:
    yield from ("", f"**{_title(model)}** — {_cell((model.__doc__ or '').strip())}", "")
    yield "| key | type | default |"
    yield "|---|---|---|"
    for key, field in model.model_fields.items():
        default = "required" if field.is_required() else _default(field.get_default(call_default_factory=True))
        marked = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        yield f"| `{key}` | {_type(marked)} | {default} |"


def _title(model: type[BaseModel]) -> str:
    for key in ("role", "kind", "model", "name"):
        field = model.model_fields.get(key)
        if field is not None and get_origin(field.annotation) is Literal:
            return f"`{key}: {get_args(field.annotation)[0]}`"
    return model.__name__


def _default(value: Any) -> str:
    if value is None or value is PydanticUndefined:
        return ""
    if isinstance(value, BaseModel):
        return f"`{value.model_dump(exclude_none=True)}`"
    return f"`{value}`" if value not in ({}, []) else ""


def _type(kind: Any) -> str:
    """Return a type in words."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in arguments)
    if origin is Annotated:
        registry = next((mark for mark in arguments if isinstance(mark, Registry)), None)
        return _type(arguments[0]) if registry is None else " or ".join(_title(kind) for kind in registry)
    if origin in (Union, UnionType):
        return " or ".join(_type(member) for member in arguments if member is not NoneType)
    if origin in (list, tuple):
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"mapping to {_type(arguments[1])}"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _title(kind)
    words = {str: "text", float: "number", int: "whole number", bool: "`true`, `false`", Any: "anything"}
    return words.get(kind) or str(getattr(kind, "__name__", kind))


def rejects() -> Iterator[str]:
    """Why a record is refused."""
    yield "## Codes of rejected records"
    yield from ("", "In dead letters, on stderr and as the label `code` of `records_rejected_total`.", "")
    yield "| code | meaning |"
    yield "|---|---|"
    for code in Reject:
        yield f"| `{code}` | {REJECTS[code]} |"
    for code, meaning in OF_A_WORKER.items():
        yield f"| `{code}` | {meaning} |"


def findings() -> Iterator[str]:
    """Yield what `check` may say of a policy."""
    yield "## Codes of findings in a policy"
    yield from ("", ", ".join(f"`{code}`" for code in sorted(set(_codes()))) + ".")


def _codes() -> Iterator[str]:
    package = Path(stream_anon.__file__).parent
    folders = (package / "policy", package / "grammar", package / "core" / "hierarchy", package / "core" / "privacy")
    for path in sorted([path for folder in folders for path in folder.rglob("*.py")] + [package / "core" / "lint.py"]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            if called in ("Problem", "warning") and isinstance(node, ast.Call) and len(node.args) > 1:
                code = node.args[1]
                if isinstance(code, ast.Constant) and isinstance(code.value, str):
                    yield code.value


def metrics() -> Iterator[str]:
    """Every metric of a worker."""
    yield from ("## Metrics", "", "| metric | kind | meaning |", "|---|---|---|")
    for metric in Metrics("name", "fingerprint", 5.0, ["zip"]).registry.collect():
        total = "_total" if metric.type == "counter" else ""
        yield f"| `{metric.name}{total}` | {metric.type} | {_cell(metric.documentation)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("[bold]", "").replace("[/bold]", "")


if __name__ == "__main__":
    sys.stdout.write(reference())
