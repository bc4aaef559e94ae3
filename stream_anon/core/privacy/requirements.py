"""All privacy models of a policy together: a group is safe when each of them says so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy.base import Floats, Ints
from stream_anon.core.privacy.base import PrivacyModel
from stream_anon.core.privacy.k_anonymity import KAnonymity
from stream_anon.core.privacy.l_diversity import DistinctL


class Requirements:
    """Any combination of models, over any number of sensitive columns."""

    def __init__(self, models: Sequence[PrivacyModel]) -> None:
        self.models = tuple(models)
        self.k = max((model.k for model in self.models), default=1)
        """Every group needs at least this many people."""
        self.repairing = [model for model in self.models if model.repairs()]

    @property
    def distinct_only(self) -> list[tuple[int, int]] | None:
        """(column, l) of each distinct l-diversity, if nothing but these and k is required; None otherwise."""
        found: list[tuple[int, int]] = []
        for model in self.models:
            if isinstance(model, DistinctL) and model.missing is None:
                found.append((model.column, model.l))
            elif not isinstance(model, KAnonymity):
                return None
        return found

    def ready(self) -> bool:
        """Whether every model knows what it needs of the whole; before that nothing may be published."""
        return all(model.ready() for model in self.models)

    def impossible(self, rows: Batch) -> list[tuple[PrivacyModel, Ints]]:
        """Rows that no group can ever hold, by the model that forbids them."""
        found = [(model, np.flatnonzero(model.impossible(rows))) for model in self.models]
        return [(model, index) for model, index in found if len(index)]

    def holds(self, rows: Batch) -> bool:
        """Whether the rows, repaired where a model can, may be published together."""
        return self.failing(rows) is None

    def hold_each(self, rows: Batch, starts: Ints) -> npt.NDArray[np.bool_]:
        """Tell the same of many groups; what is not safe as it is gets repaired where a model can."""
        good, doubtful = np.ones(len(starts) - 1, dtype=np.bool_), np.zeros(len(starts) - 1, dtype=np.bool_)
        for model in self.models:
            short = ~(model.shortfalls(rows, starts) <= 0.0)
            if model in self.repairing:
                doubtful |= short
            else:
                good &= ~short
        for g in np.flatnonzero(good & doubtful).tolist():
            good[g] = self.holds(rows.take(slice(int(starts[g]), int(starts[g + 1]))))
        return good

    def failing(self, rows: Batch) -> PrivacyModel | None:
        """Return the first model that forbids publishing these rows, sensitive values raised where one needs it."""
        found = self.first_failing(rows, self.repair(rows), np.array([0, len(rows)]))
        return None if found is None else found[0]

    def first_failing(self, rows: Batch, repaired: Batch, starts: Ints) -> tuple[PrivacyModel, int] | None:
        """Return the first model that forbids one of many groups, and that group.

        A model that raises values judges what is published. The others judge the true values: what is published
        instead of them tells less, and a node beside its own ancestor must not pass for two different values.
        """
        for model in self.models:
            short = ~(model.shortfalls(repaired if model in self.repairing else rows, starts) <= 0.0)
            if short.any():
                return model, int(np.argmax(short))
        return None

    def repair(self, rows: Batch) -> Batch:
        """Let every model raise the sensitive values it must."""
        for model in self.repairing:
            rows = model.repair(rows)
        return rows

    def repair_each(self, rows: Batch, starts: Ints) -> Batch:
        """Return the same for many groups."""
        doubtful = np.zeros(len(starts) - 1, dtype=np.bool_)
        for model in self.repairing:
            doubtful |= ~(model.shortfalls(rows, starts) <= 0.0)
        if not doubtful.any():
            return rows
        sensitive = rows.sensitive.copy()
        for g in np.flatnonzero(doubtful).tolist():
            part = slice(int(starts[g]), int(starts[g + 1]))
            sensitive[part] = self.repair(rows.take(part)).sensitive
        return rows.with_sensitive(sensitive)

    def gains(self, rows: Batch, candidates: Batch) -> Floats:
        """How much each candidate helps: gains of the models that are not satisfied yet, each relative to its need."""
        repaired = self.repair(rows)
        total = np.zeros(len(candidates))
        for model in self.models:
            view = repaired if model in self.repairing else rows
            missing = model.shortfall(view)
            if missing > 0.0:
                total += model.gains(view, candidates) / missing
        return total

    def distance(self, rows: Batch) -> float:
        """How far rows are from satisfying all models, each model's shortfall by its own measure added up."""
        repaired = self.repair(rows)
        return sum(model.shortfall(repaired if model in self.repairing else rows) for model in self.models)

    def observe(self, rows: Batch) -> None:
        """Show arriving rows to the models that learn."""
        for model in self.models:
            model.observe(rows)
