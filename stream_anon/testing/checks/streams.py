"""The contract of a stream algorithm, over every privacy model: safe groups, each row once, in time, reproducible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from random import Random

import numpy as np

from stream_anon.policy.settings import MaxDelay, StreamAlgorithmSettings, StreamSettings
from stream_anon.stream import build
from stream_anon.testing.contract.definitions import Row
from stream_anon.testing.contract.policies import GROWING, LEARNING, POLICIES, row_of, schema_under
from stream_anon.testing.contract.rule import judged, rule
from stream_anon.testing.contract.run import Run, deliver

ROWS = 40
"""Rows of one stream: some groups, and some rows that are left."""

Make = Callable[[], Run]
"""Return a run that has seen nothing; the same one each time."""


def check_stream_algorithm(settings: StreamAlgorithmSettings, seed: int = 0) -> None:
    """Run an algorithm over made-up streams, under every privacy model, and raise Broken for a rule it breaks.

    The rules: `safe-groups`, `each-row-once`, `in-time`, `waits-as-long-as-it-may`, `nothing-given-up-needlessly`,
    `all-leave-at-the-end`, `takes-what-it-can`, `count-told`, `deadline-told`, `true-records`,
    `same-input-same-output`, `batches-change-nothing`, `nothing-before-the-deadline`, `raises-nothing`.
    """
    for policy in POLICIES:
        chance = Random(f"{seed} {policy}")  # noqa: S311 - rows of a test, no secrets
        rows = [row_of(chance.getrandbits(48)) for _ in range(ROWS)]
        bounds = [MaxDelay(records=chance.randint(4, 14)), MaxDelay(time=float(chance.randint(3, 12)))]
        sizes, gaps = [chance.randint(1, 9) for _ in range(4)], [chance.randint(0, 3) for _ in range(4)]
        for bound in bounds:

            def make(bound: MaxDelay = bound, policy: str = policy, hold: bool = False) -> Run:
                stream = StreamSettings(max_delay=bound, on_deadline="hold" if hold else "suppress")
                schema = schema_under(policy, settings, stream)
                return Run(policy, build(schema), schema)

            with judged(f"{settings.name} under the policy {policy}"):
                leave_once(make(), rows, sizes, gaps)
                leave_once(make(hold=True), rows, sizes, gaps)
                give_the_same_again(make, rows[: ROWS // 2], sizes, gaps)
                if policy in GROWING:
                    leave_once(make(), rows, [1], gaps)
                if bound.time is None and policy not in LEARNING:
                    give_the_same_in_batches(make, rows, ([1], sizes, [ROWS]))
                if bound.time is not None:
                    meet_deadlines_alone(make(), rows, gaps, bound.time)


def leave_once(run: Run, rows: Sequence[Row], sizes: Sequence[int], gaps: Sequence[int]) -> None:
    """Check that all rows leave, each once, in a group or given up."""
    deliver(run, rows, cycle(sizes).__next__, cycle(gaps).__next__)
    run.flush()
    left = [ref for group in run.groups for ref in group.rows.ref[:, 1].tolist()] + run.suppressed
    rule("each-row-once", sorted(left) == list(range(len(rows))), "not every row left, or not once")


def give_the_same_again(make: Make, rows: Sequence[Row], sizes: Sequence[int], gaps: Sequence[int]) -> None:
    """Check that the same input gives the same bytes."""
    told = []
    for _ in range(2):
        run = make()
        deliver(run, rows, cycle(sizes).__next__, cycle(gaps).__next__)
        run.flush()
        told.append(([group.encoded() for group in run.groups], run.suppressed))
    rule("same-input-same-output", told[0] == told[1], "the same rows at the same times gave other groups")


def give_the_same_in_batches(make: Make, rows: Sequence[Row], steps: Sequence[Sequence[int]]) -> None:
    """Check that rows form the same groups whatever batches bring them; only a learning model may see batches."""
    told = []
    for sizes in steps:
        run = make()
        deliver(run, rows, cycle(sizes).__next__, lambda: 0)
        before_the_end = run.told()
        run.flush()
        told.append((before_the_end, run.told(), sorted(run.suppressed)))
    same = all(one == told[0] for one in told)
    rule("batches-change-nothing", same, "the same rows in other batches gave other groups")


def meet_deadlines_alone(run: Run, rows: Sequence[Row], gaps: Sequence[int], time: float) -> None:
    """Check that an idle stream is seen to at its deadlines, not a moment before, and is empty in the end."""
    deliver(run, rows, lambda: 3, cycle(gaps).__next__)
    ticks = 0
    while (deadline := run.engine.next_deadline()) is not None:
        rule("deadline-told", deadline > run.now, "a deadline has passed")
        waiting = set(run.inside)
        run.tick(float(np.nextafter(deadline, 0.0)))
        rule("nothing-before-the-deadline", set(run.inside) == waiting, "rows left a moment before the deadline")
        run.tick(deadline)
        ticks += 1
        rule("deadline-told", ticks <= 2 * len(rows), "a row is seen to more than at its deadline and once before")
    rule("in-time", not run.inside, "rows wait, and no deadline is told")
    latest = max(account.arrived for account in run.accounts.values())
    rule("in-time", run.now <= latest + time, "rows left after their deadline")
