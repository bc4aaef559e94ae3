"""The privacy models that each batch algorithm honours; a policy that asks for another is refused before any work."""

from __future__ import annotations

from stream_anon.batch.shared.dense import sets_of
from stream_anon.core.privacy import (
    AlphaK,
    DistinctL,
    EntropyL,
    GuardingNode,
    KAnonymity,
    LCAnonymity,
    PrivacyModel,
    RecursiveL,
    TCloseness,
)
from stream_anon.core.schema import Schema
from stream_anon.errors import Unsupported

WORDS: dict[type[PrivacyModel], str] = {
    KAnonymity: "k_anonymity",
    DistinctL: "l_diversity (distinct)",
    EntropyL: "l_diversity (entropy)",
    RecursiveL: "l_diversity (recursive)",
    LCAnonymity: "lc_anonymity",
    AlphaK: "alpha_k",
    TCloseness: "t_closeness",
    GuardingNode: "guarding_node",
}
EVERY = frozenset(WORDS)
ANY_SHAPE = EVERY - {GuardingNode}

HONOURS: dict[str, frozenset[type[PrivacyModel]]] = {
    "mondrian": EVERY,
    "sweep": EVERY,
    "k-member": ANY_SHAPE,  # a row that joins may raise the chance of those inside: nothing is repaired as it grows
    "l-clustering": frozenset({KAnonymity, DistinctL}),
    "l-incognito": ANY_SHAPE,  # guarding nodes do not survive merging, so a lattice cannot be pruned by them
    "lc-clustering": frozenset({KAnonymity, LCAnonymity}),
    "guarding": EVERY,
}

REQUIRES: dict[str, type[PrivacyModel]] = {
    "l-clustering": DistinctL,
    "lc-clustering": LCAnonymity,
    "guarding": GuardingNode,
}
"""The model that an algorithm is made for, exactly one of it."""

BY_VALUE = frozenset({"l-clustering", "lc-clustering"})
"""Algorithms that choose rows by their sensitive values."""

SETS = frozenset({"l-clustering", "l-incognito"})
"""Algorithms that can publish sets of values."""


def check(name: str, schema: Schema) -> None:
    """Raise Unsupported unless the algorithm can honour the whole policy."""
    models = schema.requirements.models
    for model in models:
        if type(model) not in HONOURS[name]:
            able = [other for other in HONOURS if _can(other, models)]
            raise Unsupported(
                f"{name} cannot honour {WORDS[type(model)]}; "
                + (f"these can: {', '.join(able)}" if able else "no single algorithm honours all models of this policy")
            )
    wanted = REQUIRES.get(name)
    if wanted is not None and sum(isinstance(model, wanted) for model in models) != 1:
        able = [other for other in HONOURS if _can(other, models)]
        raise Unsupported(
            f"{name} is made for one {WORDS[wanted]} model, and the policy has "
            f"{'none' if not any(isinstance(model, wanted) for model in models) else 'several'}; "
            f"these can: {', '.join(able)}"
        )
    if name in BY_VALUE and (absent := [c.name for c in schema.sensitive if c.missing is not None]):
        raise Unsupported(
            f"{name} groups rows by their sensitive values, and {', '.join(absent)} may have none (missing: leaf); "
            "say missing: reject, or take another algorithm"
        )
    sets = sets_of(schema)
    if sets and name not in SETS:
        raise Unsupported(
            f'{name} needs an order among values, and {", ".join(sets)} has a hierarchy of kind "set"; '
            f'use "flat" or a tree, or one of: {", ".join(sorted(SETS))}'
        )


def _can(name: str, models: tuple[PrivacyModel, ...]) -> bool:
    wanted = REQUIRES.get(name)
    made_for = wanted is None or sum(isinstance(model, wanted) for model in models) == 1
    return made_for and all(type(model) in HONOURS[name] for model in models)
