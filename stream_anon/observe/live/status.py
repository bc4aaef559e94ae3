"""The schema of `/api/status`: what a run tells about itself, of one worker or of several together.

Names and codes of the policy and of the program, counts and times; nothing is ever made from a record.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

SCHEMA = 1
"""Raised when a field changes its meaning or goes; new fields do not raise it."""

Tone = Literal["good", "warn", "bad", "idle"]
State = Literal["starting", "working", "incomplete", "stalled", "stopping", "ended", "gone"]
PartitionState = Literal["reading", "paused", "restoring", "quarantined"]


class Verdict(Struct, frozen=True):
    """The promise in one glance: a tone, a headline, what it rests on, and what to do if it is not well."""

    tone: Tone
    title: str
    detail: str
    remedy: str = ""


class PolicyFacts(Struct, frozen=True):
    """The policy that the run works by; `bound` is in seconds, None if only records are counted."""

    name: str
    fingerprint: str
    k: int
    counts: Annotated[str, Meta(description="what k counts: people or records")]
    bound: float | None
    models: tuple[str, ...]
    attributes: Annotated[tuple[str, ...], Meta(description="the quasi-identifiers, by name")]
    source: Annotated[str, Meta(description="where records come from: a topic, or words")]
    target: Annotated[str, Meta(description="where groups go to: a topic, or words")]
    group: Annotated[str, Meta(description="the consumer group; empty without Kafka")] = ""
    most_waiting: Annotated[int, Meta(description="rows that may wait at once (`max_buffer`)")] = 0


class Totals(Struct):
    """The counts since the start; counted anew after a restart of a worker."""

    consumed: int = 0
    published: int = 0
    groups: int = 0
    missed: Annotated[int, Meta(description="rows that left after the bound; must stay 0")] = 0
    violations: Annotated[int, Meta(description="groups stopped at the gate; must stay 0")] = 0
    rejected: Annotated[dict[str, int], Meta(description="by code")] = {}
    suppressed: Annotated[dict[str, int], Meta(description="by reason")] = {}
    withdrawn: Annotated[dict[str, int], Meta(description="groups, by reason")] = {}
    transactions: Annotated[dict[str, int], Meta(description="by result")] = {}


class Waiting(Struct):
    """What waits now: rows, the age of the oldest in seconds, open clusters, records not read yet."""

    rows: int = 0
    oldest: float = 0.0
    clusters: int = 0
    lag: int = 0


class Distribution(Struct):
    """Counts of the last minute; entry i counts what lies between edge i and edge i + 1, the last what lies beyond."""

    edges: list[float]
    counts: list[int]


class Loss(Struct):
    """What one quasi-identifier loses, 0 nothing to 1 all; None where nothing was published in that time."""

    attribute: str
    minute: float | None
    hour: float | None
    trend: Annotated[list[float | None], Meta(description="one value per minute of the last hour, oldest first")]


class Rates(Struct):
    """Records per second, one value per step, oldest first."""

    step: Annotated[float, Meta(description="seconds per value")]
    end: Annotated[float, Meta(description="the time at which the last value ends, in seconds since 1970")]
    consumed: list[float]
    published: list[float]


class PartitionFacts(Struct):
    """One partition of the input; `code` and `remedy` say why it is quarantined and what to do."""

    partition: int
    state: PartitionState
    lag: int | None = None
    worker: int = 0
    code: str = ""
    remedy: str = ""


class WorkerFacts(Struct):
    """One worker. `rate` is what it reads, in records per second over the last ten seconds."""

    worker: int
    state: State
    uptime: float = 0.0
    rate: float = 0.0
    waiting: int = 0
    partitions: int = 0
    why: str = ""


class Status(Struct):
    """The whole: of one worker, or of all workers of `--workers N` together."""

    schema: int
    version: str
    time: Annotated[float, Meta(description="when it was measured, in seconds since 1970")]
    verdict: Verdict
    policy: PolicyFacts
    totals: Totals
    waiting: Waiting
    delays: Annotated[Distribution, Meta(description="seconds from receipt to visibility, per row")]
    longest: Annotated[float, Meta(description="the longest delay since the start, in seconds")]
    sizes: Annotated[Distribution, Meta(description="records per group")]
    losses: list[Loss]
    rates: Rates
    partitions: list[PartitionFacts]
    workers: list[WorkerFacts]
    restarts: int = 0
    warnings: list[str] = []


def schema() -> dict[str, object]:
    """Return the JSON Schema of `/api/status`, which `/api/schema` serves."""
    return msgspec.json.schema(Status)
