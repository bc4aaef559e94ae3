"""Refuse a policy that a batch algorithm cannot honour, before any work; what it can is said in its own file."""

from __future__ import annotations

from stream_anon.batch.algorithms import ALGORITHMS
from stream_anon.batch.shared.dense import sets_of
from stream_anon.core.privacy import PrivacyModel
from stream_anon.core.schema import Schema
from stream_anon.errors import Unsupported


def check(name: str, schema: Schema) -> None:
    """Raise Unsupported unless the algorithm can honour the whole policy."""
    models, support = schema.requirements.models, ALGORITHMS[name].support
    able = ", ".join(other for other in ALGORITHMS if _can(other, models))
    for model in models:
        if not support.honours(type(model)):
            others = f"these can: {able}" if able else "no single algorithm honours all models of this policy"
            raise Unsupported(f"{name} cannot honour {model.in_words()}; {others}")
    wanted = support.made_for
    if wanted is not None and sum(isinstance(model, wanted) for model in models) != 1:
        found = "several" if any(isinstance(model, wanted) for model in models) else "none"
        raise Unsupported(
            f"{name} is made for one {wanted.in_words()} model, and the policy has {found}; these can: {able}"
        )
    if support.by_value and (absent := [c.name for c in schema.sensitive if c.missing is not None]):
        raise Unsupported(
            f"{name} groups rows by their sensitive values, and {', '.join(absent)} may have none (missing: leaf); "
            "say missing: reject, or take another algorithm"
        )
    sets = sets_of(schema)
    if sets and not support.sets:
        able = ", ".join(sorted(other for other, algorithm in ALGORITHMS.items() if algorithm.support.sets))
        raise Unsupported(
            f'{name} needs an order among values, and {", ".join(sets)} has a hierarchy of kind "set"; '
            f'use "flat" or a tree, or one of: {able}'
        )


def _can(name: str, models: tuple[PrivacyModel, ...]) -> bool:
    support = ALGORITHMS[name].support
    wanted = support.made_for
    made_for = wanted is None or sum(isinstance(model, wanted) for model in models) == 1
    return made_for and all(support.honours(type(model)) for model in models)
