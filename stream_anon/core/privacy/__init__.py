"""Privacy models: one small class each, behind one protocol. `build` makes them from a policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from stream_anon.core.hierarchy import Hierarchy, Ints, Tree
from stream_anon.core.hierarchy.base import UNKNOWN_LABEL
from stream_anon.core.privacy.base import PrivacyModel, SensitiveModel
from stream_anon.core.privacy.estimates import RunningDistribution, RunningWishes
from stream_anon.core.privacy.guarding import GuardingNode
from stream_anon.core.privacy.k_anonymity import KAnonymity
from stream_anon.core.privacy.l_diversity import DistinctL, EntropyL, RecursiveL
from stream_anon.core.privacy.requirements import Requirements
from stream_anon.core.privacy.shares import AlphaK, LCAnonymity
from stream_anon.core.privacy.t_closeness import TCloseness
from stream_anon.errors import Problem, nearest
from stream_anon.policy import privacy as settings

__all__ = [
    "AlphaK",
    "DistinctL",
    "EntropyL",
    "GuardingNode",
    "KAnonymity",
    "LCAnonymity",
    "PrivacyModel",
    "RecursiveL",
    "Requirements",
    "RunningDistribution",
    "RunningWishes",
    "TCloseness",
    "build",
]


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


Tables = Mapping[int, Mapping[str, Any]]
"""The tables that models name by file, read: per model's place in the policy, value by value."""


def build(
    models: Sequence[settings.PrivacySettings], columns: Sequence[Column], tables: Tables
) -> tuple[Requirements, list[Problem]]:
    """Return the models of a policy, and what is wrong with the values they name."""
    place = {column.name: s for s, column in enumerate(columns)}
    built: list[PrivacyModel] = []
    problems: list[Problem] = []

    def codes(i: int, key: str, s: int, named: Mapping[str, Any]) -> dict[int, Any]:
        found, lost = columns[s].encode(list(named))
        top = getattr(columns[s].hierarchy, "top", None)  # from here on stand the leaves of what is absent
        for j, name in enumerate(named):
            absent = top is not None and found[j] >= top and name != UNKNOWN_LABEL
            if absent or (lost is not None and lost[j]):
                path = ("privacy", i, key, name)
                problems.append(
                    Problem(
                        path, "unknown-value", f'"{name}" is no value of {columns[s].name}', _hint(columns[s], name)
                    )
                )
        return dict(zip(found.tolist(), named.values(), strict=True))

    for i, spec in enumerate(models):
        match spec:
            case settings.KAnonymity():
                built.append(KAnonymity(spec.k))
                continue
        s = place[spec.attribute]
        match spec:
            case settings.LDiversity(variant="distinct"):
                built.append(DistinctL(s, spec.l))
            case settings.LDiversity(variant="entropy"):
                built.append(EntropyL(s, spec.l))
            case settings.LDiversity():
                built.append(RecursiveL(s, spec.l, spec.c or 1.0))
            case settings.LCAnonymity():
                demands = codes(i, "values", s, tables.get(i) or _inline(spec.values))
                tree = columns[s].hierarchy
                known_values = tree.size if isinstance(tree, Tree) else None
                least = {code: value.l for code, value in demands.items()}
                sensitivities = {code: value.sensitivity for code, value in demands.items()}
                built.append(LCAnonymity(s, spec.l, spec.c, least, known_values, sensitivities))
            case settings.AlphaK(estimate=None):
                built.append(
                    AlphaK(s, spec.k, _alphas(spec, codes(i, "alpha", s, tables.get(i) or _inline(spec.alpha))))
                )
            case settings.AlphaK(estimate=settings.RunningEstimate() as estimate):
                wishes = RunningWishes(s, estimate.after, spec.floor or 1 / spec.k)
                built.append(AlphaK(s, spec.k, wishes, wishes.learn, wishes.known))
            case settings.TCloseness(estimate=None):
                known = codes(i, "reference", s, tables.get(i) or _inline(spec.reference))
                built.append(TCloseness(s, spec.t, _fixed(known, columns[s]), spec.distance == "ordered"))
            case settings.TCloseness(estimate=settings.RunningEstimate() as estimate):
                running = RunningDistribution(s, estimate.after)
                built.append(TCloseness(s, spec.t, running, spec.distance == "ordered", running.learn))
            case settings.GuardingNode():
                tree = columns[s].hierarchy
                assert isinstance(tree, Tree)  # noqa: S101 - the policy's rules hold it
                built.append(GuardingNode(s, tree, spec.p))
    for model in built:
        if isinstance(model, SensitiveModel):
            model.missing = columns[model.column].missing
    return Requirements(built), problems


def _inline(named: object) -> Mapping[str, Any]:
    return named if isinstance(named, Mapping) else {}


def _alphas(spec: settings.AlphaK, named: Mapping[int, float]) -> Any:
    everywhere = spec.alpha if isinstance(spec.alpha, float) else spec.default
    return lambda value: named.get(value, everywhere)


def _fixed(named: Mapping[int, float], column: Column) -> Any:
    """Return a reference distribution in the order of the hierarchy, or as it was written if there is none."""
    order: Iterable[int] = named if column.hierarchy is None else sorted(named)
    codes = np.array(list(order), dtype=np.int64)
    weights = np.array([named[code] for code in codes.tolist()], dtype=np.float64)
    weights = weights / weights.max()  # first, so that no sum overflows
    known = codes, weights / weights.sum()
    return lambda: known


def _hint(column: Column, name: str) -> str:
    return nearest(name, column.hierarchy.labels[: column.hierarchy.top]) if isinstance(column.hierarchy, Tree) else ""
