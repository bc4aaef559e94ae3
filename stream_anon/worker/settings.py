"""The settings of a worker apart from what it anonymizes: topics, limits, times."""

from __future__ import annotations

from dataclasses import dataclass

from stream_anon.worker.takeover.restore import Start


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The frozen settings of one worker.

    `ledger` is the topic that ledgers are kept in, None if they lie beside the offsets.
    `delay` is the user's bound in seconds, None if only records count.
    """

    input: str
    output: str
    dead_letter: str | None = None
    dead_letter_payload: bool = False
    delay: float | None = 5.0
    apart: bool = False
    start: Start | None = None
    poll_records: int = 6_000
    most_waiting: int = 200_000
    pause_at: float = 0.75
    resume_at: float = 0.5
    drain_seconds: float = 8.0
    ledger: str | None = None
