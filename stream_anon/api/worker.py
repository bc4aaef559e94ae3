"""Run the Kafka worker in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

from stream_anon.core.schema import Schema
from stream_anon.errors import TooMuchLost
from stream_anon.observe.limits import Limits
from stream_anon.observe.observer import Observer, Observers
from stream_anon.policy import Policy


def run_worker(
    policy: Policy,
    *,
    stop: threading.Event | None = None,
    instance: str | None = None,
    start: Literal["earliest", "latest"] | None = None,
    takeover: bool = False,
    observer: Observer | None = None,
    started: Callable[[], None] | None = None,
) -> None:
    """Anonymize the policy's input topic into its output topic until `stop` is set.

    More workers of the same policy, in other processes, share the partitions. `instance` is a name that this worker
    keeps over restarts, `start` (`earliest` or `latest`) says where to begin partitions without a committed offset
    although the output was used, `takeover` takes the output over from another group or policy that has ended.
    `observer` hears what happens. Setting `stop` publishes what satisfies the policy and leaves the rest unread for the
    next worker. Raises `TooMuchLost` beyond the policy's limits.
    """
    from stream_anon.observe.watch import RejectionWatch
    from stream_anon.worker.factory import core_of, hold_output, kafka_of, settings_of, transport_of
    from stream_anon.worker.loop import Worker

    schema = Schema.of(policy)
    watch = RejectionWatch(Limits.of(policy), lambda: worker.stop())
    observers = Observers(watch) if observer is None else Observers(observer, watch)
    hold_output(kafka_of(policy), schema, takeover=takeover)
    transport = transport_of(kafka_of(policy), instance, static=instance is not None)
    worker = Worker(transport, core_of(schema), settings_of(policy, start), observers)
    if stop is not None:
        threading.Thread(target=_stop_after, args=[stop, worker.stop], name="stop", daemon=True).start()
    if started is not None:
        started()
    worker.run()
    if (broken := watch.ended()) is not None:
        raise TooMuchLost(broken)


def _stop_after(event: threading.Event, stop: Callable[[], None]) -> None:
    event.wait()
    stop()
