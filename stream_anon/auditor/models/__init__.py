"""The privacy models by their definitions, one module each, independent of the models that made the groups.

Every module here that defines a model is known by its code; other distributions add theirs by entry points of the group
`stream_anon.auditor_models`. A model that a policy names and nobody knows is reported as not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from stream_anon.auditor.models.base import SLACK, Built, Columns, Counts, Model, PeopleModel, ValueModel
from stream_anon.auditor.models.guarding_node import Guarding
from stream_anon.errors import PluginError
from stream_anon.plugins import installed

__all__ = ["MODELS", "SLACK", "Built", "Columns", "Counts", "Guarding", "Model", "PeopleModel", "ValueModel"]


def _known() -> dict[str, type[Model]]:
    found: dict[str, type[Model]] = {}
    for place, model in (*_own(), *installed("stream_anon.auditor_models")):
        if not (isinstance(model, type) and issubclass(model, Model)):
            raise PluginError(f"{place}: not a class based on the auditor's Model")
        if found.setdefault(model.code, model) is not model:
            raise PluginError(f'{place}: the auditor has a model "{model.code}" already')
    return found


def _own() -> Iterator[tuple[str, Any]]:
    """Yield the models of this package, those that define a code."""
    for name in sorted(info.name for info in iter_modules(__path__)):
        module = import_module(f"{__name__}.{name}")
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__module__ == module.__name__ and hasattr(kind, "code"):
                yield module.__name__, kind


MODELS = _known()
"""Every model that the auditor can judge, by its word in the policy."""
