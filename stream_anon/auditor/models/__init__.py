"""The privacy models by their definitions, one module each, independent of the models that made the groups.

Every module here that defines a model is known by its code; other distributions add theirs by entry points of the group
`stream_anon.auditor_models`. A model that a policy names and nobody knows is reported as not judged.
"""

from __future__ import annotations

from functools import cache

from stream_anon.auditor.models.base import SLACK, Built, Columns, Counts, Model, PeopleModel, ValueModel
from stream_anon.auditor.models.guarding_node import Guarding
from stream_anon.errors import PluginError
from stream_anon.plugins import defined, installed

__all__ = ["SLACK", "Built", "Columns", "Counts", "Guarding", "Model", "PeopleModel", "ValueModel", "known_models"]


@cache
def known_models() -> dict[str, type[Model]]:
    """Return every model that the auditor can judge, by its word in the policy."""
    found: dict[str, type[Model]] = {}
    own = [(place, kind) for place, kind in defined(__name__, __path__) if hasattr(kind, "code")]
    for place, model in (*own, *installed("stream_anon.auditor_models")):
        if not (isinstance(model, type) and issubclass(model, Model)):
            raise PluginError(f"{place}: not a class based on the auditor's Model")
        if found.setdefault(model.code, model) is not model:
            raise PluginError(f'{place}: the auditor has a model "{model.code}" already')
    return found
