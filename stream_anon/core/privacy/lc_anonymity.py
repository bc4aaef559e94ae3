"""(l, c)-anonymity: enough different values, none of them too frequent; single values may ask for more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Ints, Tree
from stream_anon.core.privacy.base import PrivacyModel, SensitiveModel, excess
from stream_anon.core.privacy.counting import CountRule
from stream_anon.core.privacy.settings import MOST, Column, ColumnModelSettings, Place, more_than_values
from stream_anon.errors import Problem, warning
from stream_anon.grammar.fields import Number, Settings, Share
from stream_anon.grammar.tables import ValueTable, count, zero_to_one


class LCAnonymity(SensitiveModel):
    """At least as many values as the most demanding one present asks for, none with a share above c.

    `demands` maps a value's code to its own l, where that is more than `l`; `sensitivities` to how sensitive it is, by
    which an algorithm may order values: no verdict depends on it. `known` is how many values there are at all, if that
    is known.
    """

    name = "lc_anonymity"

    def __init__(
        self,
        column: int,
        l: int,  # noqa: E741 - the literature's name
        c: float,
        demands: Mapping[int, int] | None = None,
        known: int | None = None,
        sensitivities: Mapping[int, float] | None = None,
    ) -> None:
        super().__init__(column)
        self.l = l
        self.c = c
        self.demands = {code: max(l, demand) for code, demand in (demands or {}).items()}
        self.known = known
        self.sensitivities = dict(sensitivities or {})

    @property
    def people(self) -> int:
        """The number of values that every group needs, for few people have several."""
        return max(self.k, self.l)

    def certainty(self) -> float:
        """Return the share of each of l equally frequent values."""
        return 1.0 / self.l

    def judge(self, values: Ints, counts: Ints, people: int) -> float:
        """Values still missing, and people who have a too frequent one."""
        wanted = max((self.demands.get(value, self.l) for value in values.tolist()), default=self.l)
        return max(0, wanted - len(values)) + excess(counts, np.full(len(counts), self.c), people)

    def impossible(self, rows: Batch) -> npt.NDArray[np.bool_]:
        """Rows whose value asks for more different values than there are."""
        most = self.known if self.known is not None else np.inf
        codes = rows.sensitive[:, self.column].tolist()
        return np.array([self.demands.get(code, self.l) > most for code in codes], dtype=np.bool_)

    def counted(self) -> tuple[CountRule, ...]:
        """Return both demands as a rule on counts."""
        demands, otherwise, c = self.demands, self.l, self.c
        return (CountRule(self.column, demand=lambda code: demands.get(code, otherwise), share=lambda code: c),)


class ValueProtection(Settings):
    """How much one sensitive value is protected: the number of values its group needs, and its sensitivity.

    `sensitivity` orders values in the batch algorithm `lc-clustering`: the most sensitive seed classes, the least fill
    them. The stream and the other algorithms do not look at it.
    """

    l: int = Field(ge=1, le=MOST)  # noqa: E741 - the literature's name
    sensitivity: Annotated[Number, Field(ge=0, le=1)] = 0.0


class LCAnonymitySettings(ColumnModelSettings):
    """At least l values, none with a share above c; `values` raises l for single values, inline or from a CSV file."""

    model: Literal["lc_anonymity"]
    c: Share
    l: int = Field(default=2, ge=1, le=MOST)  # noqa: E741 - the literature's name
    values: dict[str, ValueProtection] | str = Field(default_factory=dict)
    forms = (LCAnonymity,)

    def read_table(self, folder: Path) -> Mapping[str, ValueProtection] | None:
        """Return the table that `values` names, if it names one."""
        return read_protections(folder / self.values, self.values) if isinstance(self.values, str) else None

    def build(self, place: Place) -> LCAnonymity:
        """Return the model, with the demands of single values by their codes."""
        demands = place.codes("values", self.values)
        tree = place.column.hierarchy
        return LCAnonymity(
            place.index,
            self.l,
            self.c,
            demands={code: value.l for code, value in demands.items()},
            known=tree.size if isinstance(tree, Tree) else None,
            sensitivities={code: value.sensitivity for code, value in demands.items()},
        )

    def warnings(self, model: PrivacyModel, column: Column) -> Iterator[Problem]:
        """Yield shares that cannot be kept, an l that no group can have, and sensitivities that nothing looks at."""
        if self.c * self.l < 1:
            message = f"c is below 1/l: no group of {self.l} values can keep every share within c"
            yield warning(("c",), "c-below-1-over-l", message, f"at least {1 / self.l:.4g}, or a larger l")
        if isinstance(model, LCAnonymity) and any(model.sensitivities.values()):
            message = "sensitivity orders the classes of the batch algorithm lc-clustering; nothing else looks at it"
            hint = "on the stream and in other algorithms only l and c protect: raise l where a value is sensitive"
            yield warning(("values",), "sensitivity-unused", message, hint)
        yield from more_than_values(self.l, column)


def read_protections(path: Path, shown: str) -> dict[str, ValueProtection]:
    """Return the table `value;l;sensitivity` of (l, c)-anonymity."""
    table = ValueTable(path, shown, ("value", "l", "sensitivity"))
    return {
        value: ValueProtection(l=int(values), sensitivity=sensitivity)
        for value, (values, sensitivity) in table.read(count, zero_to_one).items()
    }
