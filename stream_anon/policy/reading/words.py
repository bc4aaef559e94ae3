"""Which words are valid where in a policy, read off its models; keeps no list of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel

from stream_anon.core.hierarchy.tree import Branch
from stream_anon.grammar.registry import Registry
from stream_anon.policy.policy import Policy

Path = tuple[str | int, ...]


class Spot(NamedTuple):
    """A place among the words of a policy: its path, and the model whose keys are valid there, if there is one."""

    path: Path
    model: type[BaseModel] | None

    @property
    def keys(self) -> list[str]:
        """The keys that may stand here."""
        return list(self.model.model_fields) if self.model else []


def trace(location: Path, data: Any) -> Spot:
    """Return the spot that pydantic's error location means: it names the chosen model of a union, the file does not.

    >>> data = {"attributes": {"zip": {"role": "quasi_identifier", "weight": -1}}}
    >>> trace(("attributes", "zip", "quasi_identifier", "weight"), data).path
    ('attributes', 'zip', 'weight')
    """
    path: Path = ()
    kinds = list(_members(Policy))
    for step in location:
        models = [kind for kind in kinds if _is_model(kind)]
        if len(models) > 1:
            kinds = [model for model in models if step in tags(model)]
            continue
        if len(kinds) > 1:
            kinds = [kind for kind in kinds if isinstance(data, get_origin(kind) or kind)]
            continue
        if not kinds:
            break
        path, kinds = (*path, step), _below(kinds[0], step)
        data = _item(data, step)
    model = kinds[0] if len(kinds) == 1 and _is_model(kinds[0]) else None
    return Spot(path, model)


def tags(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the words by which a model is chosen among others: the literal of its first field."""
    first = next(iter(model.model_fields.values()))
    return get_args(first.annotation) if get_origin(first.annotation) is Literal else ()


def _members(kind: Any) -> Iterator[Any]:
    """Return the alternatives of a type, without its annotations and without None."""
    if kind is Branch:
        kind = dict[str, Branch] | list[str]
    origin = get_origin(kind)
    if origin is Annotated:
        yield from _chosen(get_args(kind)[0], get_args(kind)[1:])
    elif origin in (Union, UnionType):
        for member in get_args(kind):
            yield from _members(member)
    elif kind is not NoneType:
        yield kind


def _chosen(kind: Any, marks: Sequence[Any]) -> Iterator[Any]:
    """Return the alternatives of an annotated type: all kinds of a registry, if it is marked with one."""
    registries = [mark for mark in marks if isinstance(mark, Registry)]
    yield from registries[0] if registries else _members(kind)


def _below(kind: Any, step: str | int) -> list[Any]:
    if _is_model(kind):
        field = kind.model_fields.get(step)
        return list(_chosen(field.annotation, field.metadata)) if field else []
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is dict:
        return list(_members(arguments[1]))
    return list(_members(arguments[0])) if origin in (list, tuple) else []


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _item(data: Any, step: str | int) -> Any:
    try:
        return data[step]
    except (LookupError, TypeError):
        return None
