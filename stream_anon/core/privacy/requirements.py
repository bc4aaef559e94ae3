"""All privacy models of a policy together: a group is safe when each of them says so."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy.base import Floats, Ints
from stream_anon.core.privacy.base import PrivacyModel
from stream_anon.core.privacy.k_anonymity import KAnonymity
from stream_anon.core.privacy.l_diversity import DistinctL
from stream_anon.core.privacy.shares import AlphaK


class Requirements:
    """Any combination of models, over any number of sensitive columns."""

    def __init__(self, models: Sequence[PrivacyModel]) -> None:
        self.models = tuple(models)
        self.k = max((model.k for model in self.models if isinstance(model, KAnonymity | AlphaK)), default=1)
        """Fewer people than this never do."""
        self.repairing = [model for model in self.models if type(model).repair is not PrivacyModel.repair]

    @property
    def distinct_only(self) -> list[tuple[int, int]] | None:
        """(column, l) of each distinct l-diversity, if nothing but these and k is required; None otherwise."""
        found: list[tuple[int, int]] = []
        for model in self.models:
            if isinstance(model, DistinctL):
                found.append((model.column, model.l))
            elif not isinstance(model, KAnonymity):
                return None
        return found

    def holds(self, rows: Batch) -> bool:
        """Whether the rows, repaired where a model can, may be published together."""
        return self.failing(self.repair(rows)) is None

    def failing(self, rows: Batch) -> PrivacyModel | None:
        """The first model that forbids publishing exactly these rows."""
        return next((model for model in self.models if model.shortfall(rows) > 0.0), None)

    def first_failing(self, rows: Batch, starts: Ints) -> tuple[PrivacyModel, int] | None:
        """The first model that forbids one of many groups, and that group."""
        for model in self.models:
            short = model.shortfalls(rows, starts) > 0.0
            if short.any():
                return model, int(np.argmax(short))
        return None

    def repair(self, rows: Batch) -> Batch:
        """Let every model raise the sensitive values it must."""
        for model in self.repairing:
            rows = model.repair(rows)
        return rows

    def repair_each(self, rows: Batch, starts: Ints) -> Batch:
        """The same for many groups."""
        if not self.repairing:
            return rows
        return Batch.concat([self.repair(rows.take(slice(*ends))) for ends in pairwise(starts.tolist())])

    def gains(self, rows: Batch, candidates: Batch) -> Floats:
        """How much each candidate helps: gains of the models that are not satisfied yet, each relative to its need."""
        total = np.zeros(len(candidates))
        for model in self.models:
            missing = model.shortfall(rows)
            if missing > 0.0:
                total += model.gains(rows, candidates) / missing
        return total

    def observe(self, rows: Batch) -> None:
        """Show arriving rows to the models that learn."""
        for model in self.models:
            model.observe(rows)
