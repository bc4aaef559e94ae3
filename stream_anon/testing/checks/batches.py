"""The contract of a batch algorithm, over every model it honours: safe groups, each row at most once, reproducible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from stream_anon.batch import ALGORITHMS, Partition, partition
from stream_anon.batch.algorithms import Factory
from stream_anon.batch.support import check as check_support
from stream_anon.core.batch import Batch
from stream_anon.core.schema import Schema
from stream_anon.errors import Unsupported
from stream_anon.grammar.registry import word_of
from stream_anon.testing.contract.rule import judged, rule
from stream_anon.testing.contract.tables import POLICIES, people, rows_of, table_schema

ROWS, MOST_LOST = 160, 0.5
K = 4
"""The k of every policy here."""


def check_batch_algorithm(algorithm: Factory, seed: int = 0) -> None:
    """Run an algorithm over made-up tables, under every model it honours, and raise Broken for a rule it breaks.

    The rules: `named`, `honours-some-model`, `safe-groups`, `each-row-once`, `most-rows-published`,
    `same-input-same-output`, `equal-rows-lose-nothing`, `raises-nothing`.
    """
    settings = getattr(algorithm, "settings", None)
    name = None if settings is None else word_of(settings, "name")
    rule("named", name is not None, "its settings have no name: Literal[...] = ...")
    with _known(str(name), algorithm):
        able = [policy for policy in POLICIES if honours(str(name), policy)]
        rule("honours-some-model", able, "its support refuses every policy of this check")
        for policy in able:
            with judged(f"{name} under the policy {policy}"):
                divides(str(name), policy, seed)
        with judged(f"{name} under the policy {able[0]}"):
            keeps_to_itself(str(name), able[0])


@contextmanager
def _known(name: str, algorithm: Factory) -> Iterator[None]:
    if name in ALGORITHMS:
        yield
        return
    ALGORITHMS.add(algorithm, "the check")
    try:
        yield
    finally:
        ALGORITHMS.remove(name)


def honours(name: str, policy: str) -> bool:
    """Tell whether an algorithm can honour one of the policies."""
    try:
        check_support(name, table_schema(policy))
    except Unsupported:
        return False
    return True


def divides(name: str, policy: str, seed: int = 0) -> None:
    """Check what comes of a table: safe groups, the same ones again, and safe ones from another order of the rows."""
    schema = table_schema(policy)
    rows = rows_of(schema, people(ROWS, seed, persons=400))
    found = partition(name, rows, schema, seed=3)
    judge_partition(found, rows, schema)
    lost = len(found.suppressed)
    rule("most-rows-published", lost <= MOST_LOST * ROWS, f"{lost} of {ROWS} rows are in no group")
    again = partition(name, rows, schema, seed=3)
    same = [index.tolist() for index in again.classes] == [index.tolist() for index in found.classes]
    rule("same-input-same-output", same, "the same rows, settings and seed gave other groups")
    same = [group.id for group in again.groups] == [group.id for group in found.groups]
    rule("same-input-same-output", same, "the same groups have other ids")
    shuffled = rows.take(np.random.default_rng(1).permutation(len(rows)))
    with judged("rows in another order"):
        judge_partition(partition(name, shuffled, schema, seed=3), shuffled, schema)


def judge_partition(found: Partition, rows: Batch, schema: Schema) -> None:
    """Check that each row is in one group or suppressed, that groups satisfy the policy and lie in their boxes."""
    indices = np.concatenate([*found.classes, found.suppressed]).tolist()
    rule("each-row-once", sorted(indices) == list(range(len(rows))), "a row is in two groups, or in none and not lost")
    for group, index in zip(found.groups, found.classes, strict=True):
        members = sorted(group.rows.ref[:, 1].tolist()) == sorted(rows.ref[index, 1].tolist())
        rule("each-row-once", members, "a group has other rows than the algorithm chose")
        rule("safe-groups", schema.requirements.holds(rows.take(index)), "a group does not satisfy the policy")
        counted = group.people == len(set(rows.subject[index].tolist())) >= K
        rule("safe-groups", counted, f"a group has {group.people} people")
        inside = (group.rows.qi >= group.low).all() and (group.rows.qi <= group.high).all()
        rule("safe-groups", inside, "a row lies outside the box of its group")


def keeps_to_itself(name: str, policy: str) -> None:
    """Check small and odd tables: too few rows, too few people, rows that are all alike."""
    schema = table_schema(policy)
    for count in (0, 1, K - 1):
        few = partition(name, rows_of(schema, people(count)), schema)
        rule("safe-groups", not few.groups, f"{count} rows became a group")
    crowd = partition(name, rows_of(schema, people(60, persons=K - 1)), schema)
    rule("safe-groups", not crowd.groups, f"{K - 1} people with many rows became a group")
    one, ills = people(1)[0], ["flu", "ulcer", "cough", "asthma"]
    alike = [one | {"who": str(i), "ill": ills[i % 4], "guard": ""} for i in range(24)]
    found = partition(name, rows_of(schema, alike), schema)
    free = not len(found.suppressed) and max(group.loss for group in found.groups) == 0.0
    rule("equal-rows-lose-nothing", free, "rows that are alike were suppressed, or generalized")
