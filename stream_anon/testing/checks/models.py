"""The laws of a privacy model: what it says of a group, of many groups, and of rows that would join."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from stream_anon.auditor.models import Counts, PeopleModel, ValueModel
from stream_anon.auditor.policy import rules_of
from stream_anon.auditor.values import SensitiveColumn
from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoder
from stream_anon.core.hierarchy import Ints
from stream_anon.core.judging.judge import Judge
from stream_anon.core.privacy import MODELS, ColumnModelSettings, ModelSettings, PrivacyModel, SensitiveModel
from stream_anon.core.schema import Schema
from stream_anon.policy import Policy
from stream_anon.policy import problems as problems_of
from stream_anon.testing.contract.registered import registered
from stream_anon.testing.contract.rule import judged, rule

Rows = Sequence[tuple[int, str | None]]
"""A group: per row its person and its value."""

Definition = Callable[[Rows], bool]

ROUNDS = 120
NEAR = 1e-9
VALUES = ("flu", "cough", "asthma", "ulcer", "colic")
TREE = {"any": {"lung": ["flu", "cough", "asthma"], "stomach": ["ulcer", "colic"]}}


def check_model(
    settings: ModelSettings,
    definition: Definition | None = None,
    *,
    attribute: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> None:
    """Check a privacy model over made-up groups, and raise Broken for a law it breaks.

    `definition` says plainly, of (person, value) pairs, whether a group may be published. `attribute` are settings of
    the sensitive attribute, beside its role and a tree of illnesses (flu, cough, asthma; ulcer, colic). The laws:
    `valid-settings`, `follows-its-definition`, `never-negative`, `many-as-one`, `order-does-not-matter`,
    `people-not-rows`, `absent-values-do-not-count`, `k-is-kept`, `gains-are-differences`, `monotone-if-it-says-so`,
    `counted-if-it-says-so`, `repair-helps`, `impossible-is-impossible`, `some-pass-some-fail`, `raises-nothing`; and,
    for a model that the auditor can judge from outside with these settings, `auditor-agrees`.
    """
    with registered(MODELS, type(settings)), judged(f"the model {settings.model}"):
        made = _Made(settings, attribute or {})
        model, chance = made.model, Random(seed)  # noqa: S311 - rows of a test, no secrets
        rule("valid-settings", type(model) in settings.forms, f"{type(model).__name__} is not among its forms")
        groups = [_group(chance) for _ in range(ROUNDS)]
        whole, starts = made.batch([row for group in groups for row in group]), np.cumsum([0, *map(len, groups)])
        model.observe(whole)
        batches = [whole.take(slice(a, b)) for a, b in pairwise(starts.tolist())]
        for rows in batches:
            repairs_for_good(model, rows)
        repaired = [model.repair(rows) for rows in batches]
        for rows, group in zip(repaired, groups, strict=True):
            follows(model, rows, definition, group)
        for rows in repaired:
            is_fair(model, rows, chance)
        if isinstance(model, SensitiveModel):
            absent = made.batch([(999, None)])
            for rows in batches:
                ignores_absence(model, rows, absent)
        verdicts = [model.shortfall(rows) == 0.0 for rows in repaired]
        rule("some-pass-some-fail", any(verdicts), "no made-up group satisfies it: choose settings that some do")
        rule("some-pass-some-fail", not all(verdicts), "every made-up group satisfies it: choose stricter settings")
        candidates = made.batch([(100 + i, value) for i, value in enumerate(VALUES)])
        for rows in repaired:
            adds_up(model, rows, candidates)
        auditor_agrees(made, batches, groups)
        judges_many_as_one(model, whole, starts)
        knows_who_cannot_be_placed(model, whole, starts)
        if model.counted() is not None:
            made = _Made(settings, {**(attribute or {}), "missing": "reject"})  # loops count nothing that is absent
            made.model.observe(whole)
            is_counted(made.schema, made.batch([(100 + i, value) for i, (_, value) in enumerate(_group(chance, 60))]))


class _Made:
    """The schema of one model on one attribute, and batches under it."""

    def __init__(self, settings: ModelSettings, attribute: Mapping[str, Any]) -> None:
        name = settings.attribute if isinstance(settings, ColumnModelSettings) else "illness"
        sensitive = {"role": "sensitive", "hierarchy": {"kind": "tree", "tree": TREE}, "missing": "leaf", **attribute}
        k = [] if settings.people else [{"model": "k_anonymity", "k": 2}]
        data = {
            "version": 1,
            "name": "check",
            "subject": "person",
            "secret": "a secret only for checks, and of no value",
            "attributes": {
                "person": {"role": "identifier"},
                "sex": {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "flat", "values": ["f"]}},
                name: sensitive,
            },
            "privacy": [settings.model_dump(mode="json"), *k],
        }
        policy = Policy.model_validate(data)
        plain = Policy.model_validate({**data, "privacy": [{"model": "k_anonymity", "k": 2}]})
        rule("valid-settings", policy.privacy[0] == settings, "settings written as JSON are read as other ones")
        broken = problems_of(policy)
        rule("valid-settings", not broken, f"the settings break rules: {broken}")
        self.schema, self.policy = Schema.of(policy), policy
        self.model: PrivacyModel = self.schema.requirements.models[0]
        self.name, self._guard, self._psf = name, sensitive.get("guarding_node"), sensitive.get("psf")
        self._encoder = Encoder(Schema.of(plain))  # a model may refuse rows: here it is to judge them

    def batch(self, rows: Rows) -> Batch:
        """Return the rows as the model sees them; every third guards the node above its value, if that is asked."""
        parents = {leaf: node for node, leaves in TREE["any"].items() for leaf in leaves}
        records: list[dict[str, Any]] = [{"person": p, "sex": "f", self.name: value} for p, value in rows]
        for i, record in enumerate(records):
            record |= {self._guard: parents.get(record[self.name]) if i % 3 == 0 else None} if self._guard else {}
            record |= {self._psf: i % 3 - 1} if self._psf else {}
        n = len(records)
        ref = np.stack([np.zeros(n, dtype=np.int64), np.arange(n)], axis=1)
        return self._encoder.encode(records, ref, np.zeros(n)).batch

    def auditor(self) -> tuple[PeopleModel | ValueModel | None, SensitiveColumn]:
        """Return the auditor's model, None if it has none or needs what is not published; and its column."""
        rules = rules_of(self.policy.model_dump(mode="json", exclude={"secret"}, exclude_none=True), Path())
        code = self.policy.privacy[0].model
        found = None if rules.unjudged else next((model for model in rules.models if model.code == code), None)
        return found if isinstance(found, PeopleModel | ValueModel) else None, rules.sensitive[self.name]


def _group(chance: Random, most: int = 12) -> list[tuple[int, str | None]]:
    common = chance.choice(VALUES)  # some groups have one value too often
    return [
        (chance.randrange(8), common if chance.random() < 0.3 else chance.choice(VALUES))
        for _ in range(chance.randint(1, most))
    ]


def follows(model: PrivacyModel, rows: Batch, definition: Definition | None, group: Rows) -> None:
    """Check that the shortfall is a finite number from 0 on, and 0 exactly where the definition holds."""
    short = model.shortfall(rows)
    rule("never-negative", np.isfinite(short) and short >= 0.0, f"a shortfall is {short}")
    if definition is not None:
        wanted = definition(group)
        detail = f"of a group of {len(group)} rows the model says {short == 0.0}, the definition {wanted}"
        rule("follows-its-definition", (short == 0.0) == wanted, detail)


def is_fair(model: PrivacyModel, rows: Batch, chance: Random) -> None:
    """Check that neither the order of rows nor a row that repeats another changes the verdict, and that k is kept."""
    short = model.shortfall(rows)
    order = list(range(len(rows)))
    chance.shuffle(order)
    shuffled = model.shortfall(rows.take(np.array(order, dtype=np.int64)))
    rule("order-does-not-matter", abs(shuffled - short) <= NEAR, "rows in another order are judged differently")
    twice = model.shortfall(rows.take(np.array([*range(len(rows)), 0])))
    rule("people-not-rows", (twice == 0.0) == (short == 0.0), "a person's row that is there twice changes the verdict")
    people = len(np.unique(rows.subject))
    rule("k-is-kept", short > 0.0 or people >= model.k, f"{people} people satisfy it, and its k is {model.k}")


def adds_up(model: PrivacyModel, rows: Batch, candidates: Batch) -> None:
    """Check that gains are differences of shortfalls, for new people, and that a monotone model stays satisfied."""
    short, gains = model.shortfall(rows), model.gains(rows, candidates)
    rule("gains-are-differences", len(gains) == len(candidates), "there is not one gain for each candidate")
    for i in range(len(candidates)):
        after = model.shortfall(Batch.concat([rows, candidates.take(slice(i, i + 1))]))
        detail = f"a gain is {gains[i]}, and the shortfall goes from {short} to {after}"
        rule("gains-are-differences", abs(gains[i] - (short - after)) <= NEAR, detail)
        kept = not model.monotone or short > 0.0 or after == 0.0
        rule("monotone-if-it-says-so", kept, "it says that rows may join, and one more breaks a group")


def repairs_for_good(model: PrivacyModel, rows: Batch) -> None:
    """Check that a repair leaves the given rows alone, is the same each time, and never makes matters worse."""
    before = rows.sensitive.copy()
    repaired, again = model.repair(rows), model.repair(rows)
    rule("repair-helps", np.array_equal(rows.sensitive, before), "the rows that were given were changed")
    rule("repair-helps", np.array_equal(repaired.sensitive, again.sensitive), "a second repair gives other values")
    rule("repair-helps", np.array_equal(repaired.ref, rows.ref), "a repair gave other rows")
    worse = model.shortfall(repaired) > model.shortfall(rows) + NEAR
    rule("repair-helps", not worse, "a repair made the shortfall larger")


def ignores_absence(model: SensitiveModel, rows: Batch, absent: Batch) -> None:
    """Check that a value that is not there counts neither as a value nor among those who have one."""
    same = abs(model.shortfall(Batch.concat([rows, absent])) - model.shortfall(rows)) <= NEAR
    rule("absent-values-do-not-count", same, "a row without a value changes the verdict")


def auditor_agrees(made: _Made, batches: Sequence[Batch], groups: Sequence[Rows]) -> None:
    """Check that the auditor's own definition fails the same groups, each person in them once."""
    judge, column = made.auditor()
    if judge is None:
        return
    for rows, group in zip(batches, groups, strict=True):
        first = np.unique(rows.subject, return_index=True)[1]
        values = np.array([column.code(group[i][1]) for i in first], dtype=np.int64)
        people = np.array([len(first)])
        if isinstance(judge, ValueModel):
            failing = judge.failing(Counts.of(np.zeros(len(first), dtype=np.int64), values, people, once=True))
        else:
            failing = judge.failing(people)
        held = made.model.shortfall(rows.take(first)) == 0.0
        detail = f"of a group of {len(first)} people the model says {held}, the auditor {not failing[0]}"
        rule("auditor-agrees", held != bool(failing[0]), detail)


def judges_many_as_one(model: PrivacyModel, rows: Batch, starts: Ints) -> None:
    """Check that many groups at once are judged as one by one."""
    each = [model.shortfall(rows.take(slice(a, b))) for a, b in pairwise(starts.tolist())]
    found = np.asarray(model.shortfalls(rows, starts))
    rule("many-as-one", found.shape == (len(each),), "there is not one shortfall for each group")
    rule("many-as-one", np.abs(found - each).max() <= NEAR, "many groups at once are judged differently than alone")


def knows_who_cannot_be_placed(model: PrivacyModel, rows: Batch, starts: Ints) -> None:
    """Check that a row that no group can ever hold is in no group that satisfies the model."""
    hopeless = model.impossible(rows)
    for a, b in pairwise(starts.tolist()):
        if hopeless[a:b].any():
            short = model.shortfall(model.repair(rows.take(slice(a, b))))
            rule("impossible-is-impossible", short > 0.0, "a group satisfies it, with a row that no group can hold")


def is_counted(schema: Schema, rows: Batch) -> None:
    """Check that compiled counting judges groups as the model does."""
    judge, chance = Judge(rows, schema), np.random.default_rng(3)
    for _ in range(ROUNDS):
        index = chance.choice(len(rows), chance.integers(1, 14), replace=True)
        index = np.unique(index)
        same = judge.holds(index) == schema.requirements.holds(rows.take(index))
        rule("counted-if-it-says-so", same, "its rule on counts judges a group differently than the model does")


def holders_of(rows: Rows) -> dict[str, set[int]]:
    """Return the people who have each value, for definitions.

    >>> holders_of([(1, "flu"), (2, "flu"), (1, "flu")])
    {'flu': {1, 2}}
    """
    found: dict[str, set[int]] = {}
    for person, value in rows:
        if value is not None:
            found.setdefault(value, set()).add(person)
    return found
