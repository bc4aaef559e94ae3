"""Attack what a policy's own algorithm makes of a table."""

from __future__ import annotations

from dataclasses import replace

from stream_anon.core.batch import Batch
from stream_anon.core.privacy.k_anonymity import KAnonymitySettings
from stream_anon.core.schema import Schema
from stream_anon.errors import Unsupported
from stream_anon.insight.minimality.attack import Found, minimality
from stream_anon.insight.minimality.runs import BatchRun, Run, StreamRun, numbered
from stream_anon.policy import LoadedPolicy


def attack_policy(
    loaded: LoadedPolicy, schema: Schema, rows: Batch, replays: int, algorithm: str | None, rate: float
) -> list[Found]:
    """Run the policy's algorithm, or a batch one, with all models and with k alone; then attack."""
    people = KAnonymitySettings(model="k_anonymity", k=max(2, schema.requirements.k))
    blind = Schema.compile(replace(loaded, policy=loaded.policy.model_copy(update={"privacy": [people]})))
    rows = numbered(rows, rate)

    def run(of: Schema) -> Run:
        return StreamRun(of, rows, rate) if algorithm is None else BatchRun(of, rows, algorithm)

    made = run(schema)
    try:
        return minimality(schema, rows, made, run(blind), replays)
    except Unsupported:  # it chooses by value by definition: there is nothing that it would make blindly
        return minimality(schema, rows, made, made, replays)
