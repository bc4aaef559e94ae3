"""What the status tells of a policy: names, numbers and models, never a secret or a table of values."""

from __future__ import annotations

from stream_anon.core.schema import Schema
from stream_anon.observe.live.status import PolicyFacts


def facts_of(schema: Schema) -> PolicyFacts:
    """Return the facts of a policy."""
    policy = schema.policy
    kafka = policy.kafka
    return PolicyFacts(
        policy.name,
        schema.fingerprint[:12],
        schema.requirements.k,
        schema.counts,
        policy.stream.max_delay.time,
        tuple(map(_words, (model.model_dump(exclude_none=True, exclude_defaults=True) for model in policy.privacy))),
        tuple(column.name for column in schema.quasi),
        kafka.input if kafka else "this process",
        kafka.output if kafka else "this process",
        kafka.group if kafka else "",
        policy.stream.max_buffer,
    )


def _words(model: dict[str, object]) -> str:
    """Return a model with its numbers; settings with a structure, which may hold values of records, are left out.

    >>> _words({"model": "l_diversity", "attribute": "diagnosis", "l": 3, "table": {"flu": 1}})
    'l_diversity attribute=diagnosis l=3'
    """
    plain = {key: value for key, value in model.items() if isinstance(value, str | int | float) and key != "model"}
    return " ".join([str(model["model"]), *(f"{key}={value}" for key, value in plain.items())])
