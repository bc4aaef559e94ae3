"""Privacy models: one module each, with settings, rules and judgement. `build` makes them from a policy.

Every module of this package that defines settings is a model; other distributions add theirs by entry points of the
group `stream_anon.privacy_models`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from stream_anon.core.privacy.alpha_k import AlphaK
from stream_anon.core.privacy.base import PrivacyModel, SensitiveModel
from stream_anon.core.privacy.estimates import RunningDistribution, RunningWishes
from stream_anon.core.privacy.guarding_node import GuardingNode
from stream_anon.core.privacy.k_anonymity import KAnonymity
from stream_anon.core.privacy.l_diversity import DistinctL, EntropyL, RecursiveL
from stream_anon.core.privacy.lc_anonymity import LCAnonymity
from stream_anon.core.privacy.requirements import Requirements
from stream_anon.core.privacy.settings import (
    MODELS,
    Column,
    ColumnModelSettings,
    ModelSettings,
    Place,
    PlainModelSettings,
)
from stream_anon.core.privacy.t_closeness import TCloseness
from stream_anon.errors import Problem

__all__ = [
    "MODELS",
    "AlphaK",
    "Column",
    "ColumnModelSettings",
    "DistinctL",
    "EntropyL",
    "GuardingNode",
    "KAnonymity",
    "LCAnonymity",
    "ModelSettings",
    "Place",
    "PlainModelSettings",
    "PrivacyModel",
    "PrivacySettings",
    "RecursiveL",
    "Requirements",
    "RunningDistribution",
    "RunningWishes",
    "SensitiveModel",
    "TCloseness",
    "build",
]

MODELS.discover(__name__, __path__)

PrivacySettings = Annotated[ModelSettings, MODELS]
"""The settings of any model that is known."""

Tables = Mapping[int, Mapping[str, Any]]
"""The tables that models name by file, read: per model's place in the policy, value by value."""


def build(
    models: Sequence[ModelSettings], columns: Sequence[Column], tables: Tables
) -> tuple[Requirements, list[Problem]]:
    """Return the models of a policy, and what is wrong with the values they name."""
    number = {column.name: s for s, column in enumerate(columns)}
    built: list[PrivacyModel] = []
    problems: list[Problem] = []
    for i, spec in enumerate(models):
        if isinstance(spec, ColumnModelSettings):
            s = number[spec.attribute]
            place = Place(columns[s], s, tables.get(i, {}))
            model = spec.build(place)
            problems += [replace(problem, path=("privacy", i, *problem.path)) for problem in place.problems]
            if isinstance(model, SensitiveModel):
                model.missing = columns[s].missing
        elif isinstance(spec, PlainModelSettings):
            model = spec.build()
        else:
            raise TypeError(f"{type(spec).__name__} is neither ColumnModelSettings nor PlainModelSettings")
        built.append(model)
    return Requirements(built), problems
