"""The settings of a privacy model: what a policy says of it, what must hold, and how the model is built.

A model is one module of this package: its settings (a subclass of `ModelSettings` or `ColumnModelSettings`) and its
judgement (a subclass of `PrivacyModel`). Everything else is derived from the registry `MODELS`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from pydantic import Field

from stream_anon.core.hierarchy import Hierarchy, Ints, Tree
from stream_anon.core.hierarchy.base import UNKNOWN_LABEL
from stream_anon.core.hierarchy.settings import HierarchySettings
from stream_anon.core.privacy.base import PrivacyModel
from stream_anon.errors import Problem, nearest, warning
from stream_anon.grammar.fields import Settings
from stream_anon.grammar.registry import Registry

MOST = 1_000_000
"""No k or l beyond this: a group so large would never be complete, and counts must fit a machine word."""


class Attribute(Protocol):
    """What a model's rules may ask of the attribute it names."""

    @property
    def hierarchy(self) -> HierarchySettings | None:
        """The settings of its hierarchy, if it has one."""
        ...

    @property
    def guarding_node(self) -> str | None:
        """The field in which a person says which node to guard."""
        ...

    @property
    def psf(self) -> str | None:
        """The field in which a person says how much to protect."""
        ...


class Column(Protocol):
    """What a model must know of a sensitive column."""

    @property
    def name(self) -> str:
        """Its name in the policy."""
        ...

    @property
    def hierarchy(self) -> Hierarchy | None:
        """Its hierarchy, if it has one."""
        ...

    @property
    def missing(self) -> int | None:
        """The code of a value that is not there, None if such a record is rejected."""
        ...

    def encode(self, values: Sequence[Any]) -> tuple[Ints, Ints | None]:
        """Codes of values, and which of them have none."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a model that is being built: the column it judges, and the table it names by file, if it does.

    `index` is the column's number among the sensitive ones. `problems` collects values that the column does not have.
    """

    column: Column
    index: int
    table: Mapping[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def codes(self, key: str, inline: object) -> dict[int, Any]:
        """Return what is said of single values, by their codes: from the table, else as written under `key`."""
        named: Mapping[str, Any] = self.table or (inline if isinstance(inline, Mapping) else {})
        found, lost = self.column.encode(list(named))
        hierarchy = self.column.hierarchy
        top = getattr(hierarchy, "top", None)  # from here on stand the leaves of what is absent
        for j, name in enumerate(named):
            absent = top is not None and found[j] >= top and name != UNKNOWN_LABEL
            if absent or (lost is not None and lost[j]):
                hint = nearest(name, hierarchy.labels[: hierarchy.top]) if isinstance(hierarchy, Tree) else ""
                message = f'"{name}" is no value of {self.column.name}'
                self.problems.append(Problem((key, name), "unknown-value", message, hint))
        return dict(zip(found.tolist(), named.values(), strict=True))


class ModelSettings(Settings):
    """The settings of one privacy model.

    A subclass narrows `model` to the literal by which a policy chooses it. `forms` are the classes that it may become.
    Paths of problems and warnings are relative to the model's entry in the policy.
    """

    model: str
    forms: ClassVar[tuple[type[PrivacyModel], ...]] = ()

    @property
    def people(self) -> int:
        """The number of people that it asks for in a group, its `k`; 0 for a model that asks for none."""
        return 0

    @property
    def learns(self) -> bool:
        """Whether its verdict follows from records seen before, so that it can change over time."""
        return False

    def with_people(self, k: int) -> Self:
        """Return the same settings with another k, if they have one."""
        return self.model_copy(update={"k": k}) if self.people else self


class PlainModelSettings(ModelSettings):
    """The settings of a model that looks at no sensitive attribute."""

    @abstractmethod
    def build(self) -> PrivacyModel:
        """Return the model that these settings describe."""


class ColumnModelSettings(ModelSettings):
    """The settings of a model that judges the values of one sensitive attribute."""

    attribute: str = Field()

    @abstractmethod
    def build(self, place: Place) -> PrivacyModel:
        """Return the model that these settings describe, for the column at that place."""

    def rules(self, attribute: Attribute) -> Iterator[Problem]:
        """Yield what is contradictory in the settings, and what the attribute lacks."""
        yield from ()

    def read_table(self, folder: Path) -> Mapping[str, Any] | None:
        """Return the table of values that the settings name by file; raise PolicyError for a broken one."""
        return None

    def warnings(self, model: PrivacyModel, column: Column) -> Iterator[Problem]:
        """Yield likely mistakes in valid settings; `model` is what they were built into."""
        yield from ()


def one_of(one: str, given: object, other: str, also: object) -> Iterator[Problem]:
    """Yield a problem unless exactly one of two keys is given."""
    if given is not None and also is not None:
        hint = "remove one of them"
        yield Problem((other,), "either-or", f'"{one}" and "{other}" exclude each other', hint)
    if given is None and also is None:
        yield Problem((one,), "missing-key", f'one of "{one}" and "{other}" is needed', f'add "{one}: ..."')


def more_than_values(l: int, column: Column) -> Iterator[Problem]:  # noqa: E741 - the literature's name
    """Yield a warning if a model asks for more different values than the column has."""
    tree = column.hierarchy
    if isinstance(tree, Tree) and l > tree.size:
        message = f"l is above the number of values of the attribute ({tree.size}): nothing can be published"
        yield warning(("l",), "l-above-values", message, f"at most {tree.size}")


MODELS: Registry[ModelSettings] = Registry(ModelSettings, key="model", group="stream_anon.privacy_models")
"""Every privacy model by its word in the policy; other distributions add theirs by entry points of that group."""
