"""How a value may become less exact: one small settings class per kind of hierarchy. What they do is in `core`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from typing_extensions import TypeAliasType

from stream_anon.grammar.fields import Number, Settings

Unit = Literal["second", "minute", "hour", "day", "week", "month", "quarter", "year"]
Branch = TypeAliasType("Branch", "dict[str, Branch] | list[str] | None")


def _grids(value: Any) -> Any:
    """No grids at all for the word `none`, which is said on purpose; None is nothing said."""
    if isinstance(value, str) and value != "none":
        raise ValueError('a list of grids, finest first, or "none" for exact ends')
    return [] if value == "none" else value


Grids = Annotated[
    list[Annotated[Number, Field(gt=0)]] | None,
    BeforeValidator(_grids),
    WithJsonSchema(
        {"anyOf": [{"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}}, {"enum": ["none", None]}]}
    ),
]
"""Grids from fine to coarse, an empty list where none is wanted, None where nothing was said."""


class IntervalHierarchy(Settings):
    """Numbers become intervals `[low, high]`.

    With `range`, the loss of an interval is its width over the width of the range, and a number outside is unknown.
    Without it the domain is open, and `scale` says at what width everything is lost. `snap` lists grids, finest first:
    an interval is widened to the cell of the first grid that holds it, else its ends to the coarsest grid, so that no
    end is some person's value. A quasi-identifier of more than 50 steps needs it; `snap: none` publishes exact ends.
    Numbers that are not integers are told apart only down to `step`.
    """

    kind: Literal["interval"]
    range: tuple[Number, Number] | None = Field(default=None, strict=False)
    scale: Annotated[Number, Field(gt=0)] | None = None
    snap: Grids = None
    step: Annotated[Number, Field(gt=0)] | None = None


class FlatHierarchy(Settings):
    """Named values that become `*` when they differ."""

    kind: Literal["flat"]
    values: list[str] = Field(min_length=1)


class TreeHierarchy(Settings):
    """A tree written inline: each node maps to its children, leaves as a list, or to nothing if it is one; one root."""

    kind: Literal["tree"]
    tree: dict[str, Branch] = Field(min_length=1, max_length=1)


class CsvHierarchy(Settings):
    """A tree in ARX's CSV form: no header, one line per leaf, column i is the label at level i, the last one `*`."""

    kind: Literal["csv"]
    path: str
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ";"


class PrefixHierarchy(Settings):
    """Codes of one length that lose characters from the right, such as zip codes: 02139, 0213*, 021**."""

    kind: Literal["prefix"]
    length: int = Field(ge=1, le=12)
    alphabet: Literal["digits", "alphanumeric"] = "digits"


class CalendarHierarchy(Settings):
    """Instants that become hours, days, weeks, months ...: the first level is the finest that is ever published."""

    kind: Literal["calendar"]
    levels: list[Unit] = Field(min_length=1)
    epoch: Literal["seconds", "milliseconds"] = "milliseconds"


class SetHierarchy(Settings):
    """No hierarchy: different values become the set of them. For `l-clustering`."""

    kind: Literal["set"]
    values: list[str] = Field(min_length=1)


HierarchySettings = Annotated[
    IntervalHierarchy
    | FlatHierarchy
    | TreeHierarchy
    | CsvHierarchy
    | PrefixHierarchy
    | CalendarHierarchy
    | SetHierarchy,
    Field(discriminator="kind"),
]
