"""A fix for kafka-python: keep a rebalance that ended between two polls, which it would discard and begin again."""

from __future__ import annotations

from typing import Any

from kafka.structs import MemberState


def keep_finished_joins(coordinator: Any) -> None:
    """Make the coordinator take up a join that succeeded while nobody polled.

    kafka-python 3.0.12 joins in the background and takes the answer up in the poll that waits for it. If the answer
    came between two polls, the next one discards it and joins anew, which makes every other member join anew too. A
    group of busy members, or of many, went on like this for minutes without a stable generation.
    """
    join = coordinator.join_group_async

    async def join_group_async(timeout_ms: float | None = None) -> bool:
        task = coordinator._join_task
        finished = task is not None and task.is_done and task.succeeded()
        if not finished or coordinator.state is not MemberState.REBALANCING:
            return bool(await join(timeout_ms))
        coordinator._join_task = None
        with coordinator._lock:  # as the client does when it was waiting for it
            coordinator.rejoining = coordinator.rejoin_needed = False
            coordinator.state = MemberState.STABLE
            coordinator._enable_heartbeat()
        joined = coordinator._generation
        await coordinator._on_join_complete_async(joined.generation_id, joined.member_id, joined.protocol, task.value)
        return True

    coordinator.join_group_async = join_group_async
