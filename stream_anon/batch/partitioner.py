"""The contract of a batch algorithm: rows in, groups of row numbers out. No file, no clock, no gate inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple, Protocol

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Ints
from stream_anon.core.privacy import PrivacyModel
from stream_anon.core.schema import Schema
from stream_anon.grammar.fields import Settings

Watch = Callable[[int], None]
"""A progress callback: called now and then with how many rows have a group."""


def unwatched(settled: int) -> None:
    """Ignore the progress; this is the default callback."""


class Support(NamedTuple):
    """The policies that an algorithm can honour.

    `only` are the models that its search satisfies by construction, None if it asks every model and so honours any.
    `repairs`: it copes with models that raise sensitive values. `made_for` is the model it cannot do without, exactly
    one of it. `by_value`: it chooses rows by their sensitive values, so that each must have one. `sets`: it can publish
    sets of values, which have no order.
    """

    only: tuple[type[PrivacyModel], ...] | None = None
    repairs: bool = True
    made_for: type[PrivacyModel] | None = None
    by_value: bool = False
    sets: bool = False

    def honours(self, model: type[PrivacyModel]) -> bool:
        """Tell whether groups of the algorithm can satisfy a model."""
        if self.only is not None:
            return model in self.only
        return self.repairs or not model.repairs()


class Partitioner(Protocol):
    """An algorithm that divides rows into groups that satisfy the policy.

    The caller has shown the rows to the models that learn, and has made sure that the algorithm honours the policy.
    Every row is in at most one of the index arrays returned; a row in none of them is suppressed. The result depends on
    the rows, the schema, the settings and the seed, on nothing else; another order of the rows may give other groups,
    never worse protected ones. What comes back passes through the gate: a group that fails is a defect.
    """

    settings: ClassVar[type[Settings]]
    """Its parameters; the first field, `name`, is a literal: the name by which the algorithm is called."""

    support: ClassVar[Support]
    """What it can honour; a policy that asks for more is refused before any work."""

    nanoseconds: ClassVar[float]
    """Roughly what a pair of rows costs; 0 if the work grows with the rows and not with their pairs."""

    def __call__(self, rows: Batch, schema: Schema, watch: Watch = unwatched) -> list[Ints]:
        """Divide the rows and return the groups as arrays of row numbers."""
        ...
