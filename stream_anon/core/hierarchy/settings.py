"""The settings of a hierarchy: what a policy says of it, what must hold, and how the hierarchy is built.

A kind of hierarchy is one module of this package: its settings (a subclass of `HierarchySettings`) and the class that
does the work (it keeps to `Hierarchy` in `base`). Everything else is derived from the registry `HIERARCHIES`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar

from stream_anon.core.hierarchy.base import Hierarchy, Leaves
from stream_anon.errors import Problem
from stream_anon.grammar.fields import Settings
from stream_anon.grammar.registry import Registry


class HierarchySettings(Settings):
    """The settings of one kind of hierarchy.

    A subclass narrows `kind` to the literal by which a policy chooses it. `types` are the types of values it can hold.
    `named_nodes`: it is built into a `Tree`, whose nodes have names. Paths of problems and warnings are relative to the
    hierarchy's entry in the policy.
    """

    kind: str
    types: ClassVar[tuple[str, ...]] = ("category",)
    named_nodes: ClassVar[bool] = False

    @abstractmethod
    def build(self, folder: Path, leaves: Leaves) -> Hierarchy:
        """Return the hierarchy, with files from the folder; raise PolicyError for a broken file."""

    def rules(self, type_: str) -> Iterator[Problem]:
        """Yield what is contradictory in the settings, for values of this type; opens no file."""
        yield from ()

    def quasi_rules(self) -> Iterator[Problem]:
        """Yield what a quasi-identifier needs beyond that."""
        yield from ()

    def quasi_warnings(self) -> Iterator[Problem]:
        """Yield likely mistakes in the valid settings of a quasi-identifier."""
        yield from ()


HIERARCHIES: Registry[HierarchySettings] = Registry(
    HierarchySettings,  # type: ignore[type-abstract]
    key="kind",
    group="stream_anon.hierarchies",
)
"""Every kind of hierarchy by its word in the policy; other distributions add theirs by entry points of that group."""

AnyHierarchy = Annotated[HierarchySettings, HIERARCHIES]
"""The settings of any kind of hierarchy that is known."""


def hierarchy_problems(path: tuple[str | int, ...], type_: str, hierarchy: HierarchySettings) -> Iterator[Problem]:
    """Yield every rule that a hierarchy breaks, as that of the attribute at this path, of this type."""
    path = (*path, "hierarchy")
    if type_ not in hierarchy.types:
        message = f"a hierarchy of kind {hierarchy.kind} does not fit the type {type_}"
        fitting = ", ".join(word for word in HIERARCHIES.words if type_ in HIERARCHIES[word].types)
        yield Problem((*path, "kind"), "kind-and-type", message, f"for {type_}: {fitting}")
        return
    yield from at(path, hierarchy.rules(type_))


def at(path: tuple[str | int, ...], found: Iterator[Problem]) -> Iterator[Problem]:
    """Yield problems with their paths below another one."""
    for problem in found:
        yield replace(problem, path=(*path, *problem.path))


def trees() -> tuple[str, ...]:
    """Return the kinds of hierarchy that are trees of named nodes."""
    return tuple(word for word in HIERARCHIES.words if HIERARCHIES[word].named_nodes)


def repeated(key: str, values: Sequence[str]) -> Iterator[Problem]:
    """Yield the values that a list names again."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield Problem((key, index), "duplicate-value", "this value is listed twice", "remove one of them")
        seen.add(value)
