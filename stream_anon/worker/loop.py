"""The loop: poll, decode and slice, push and tick, announce, publish, commit, observe. One thread, one transaction.

It decides when; what is in a transaction is `plan`'s business, whose partitions are ours is `ownership`'s.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from stream_anon.errors import PrivacyViolation
from stream_anon.kafka.transport import AbortableError, OutcomeUnknownError, Pending, Polled, Transport
from stream_anon.observe.observer import Observer
from stream_anon.worker.groups import Core, Formed
from stream_anon.worker.ledger.codec import LIMIT
from stream_anon.worker.ownership import Ownership
from stream_anon.worker.planner import Plan, Planner
from stream_anon.worker.restore import OtherPolicyError
from stream_anon.worker.schedule import CommitSchedule, PollLimit, engine_bound
from stream_anon.worker.settings import WorkerSettings
from stream_anon.worker.state.partition import PER_OFFSET, PER_ROW, rows_of
from stream_anon.worker.state.state import WorkerState

_log = logging.getLogger("stream_anon.worker")
_LONGEST_WAIT = 0.2  # seconds in one poll: how late a stop or a rebalance may be noticed
_BUSY = 1_000  # records in one poll from which on more are sure to wait
_LOOK_EVERY = 0.01  # seconds in one poll while a transaction is under way
_T = TypeVar("_T")
_TIDY_EVERY = 1.0  # seconds between commits that only move positions
_ASK_EVERY = 2.0  # seconds between questions for the ends of paused partitions


@dataclass(frozen=True, slots=True)
class InFlight:
    """A transaction in progress, and the time it has cost the loop so far, in seconds."""

    plan: Plan
    began: float
    took: float
    pending: Pending


class Worker:
    """One worker. `step` is one round of the loop; `run` repeats it until `stop` is called, then drains.

    Any error that is not abortable ends it: what is left open is settled by whoever takes over.
    """

    def __init__(
        self,
        transport: Transport,
        core: Core,
        settings: WorkerSettings,
        observer: Observer | None = None,
        clock: Callable[[], float] = time.monotonic,
        writer: int | None = None,
    ) -> None:
        self._transport, self._settings, self._clock = transport, settings, clock
        self._observer = observer or Observer()
        self.state = WorkerState(core, settings, self._observer)
        self.ownership = Ownership(transport, self.state, core, settings, self._observer)
        self._schedule = CommitSchedule(settings.delay)
        self._poll_limit = PollLimit(settings.poll_records, settings.delay)
        writer = secrets.randbits(32) if writer is None else writer
        self._planner = Planner(self.ownership.codec, core.fingerprint, writer, settings.announce)
        self._in_flight: InFlight | None = None
        self._stop = False
        self._paused: set[int] = set()
        self._ends: dict[int, int] = {}
        self._asked = float("-inf")

    def stop(self) -> None:
        """Ask the loop to drain and end; safe to call from a signal handler."""
        self._stop = True

    @property
    def ready(self) -> bool:
        """Whether all assigned partitions are being processed."""
        return self.ownership.complete

    def run(self) -> None:
        """Work until stopped, then leave nothing announced behind."""
        self.ownership.check_topics()
        self.ownership.check_policy()
        self._transport.renew()  # before the first record: it takes a second on a new broker, and shows missing rights
        try:
            while not self._stop:
                self.step()
            self.drain()
        except PrivacyViolation:
            self._observer.violated()
            _log.critical("a group was stopped at the gate", extra={"remedy": "report it: this is a defect"})
            raise
        except OtherPolicyError:
            self._transport.close()  # at once: the partitions are for those who may work on them
            raise
        self._transport.close()

    def step(self) -> None:
        """Run one round: announce and publish what earlier rounds formed while new records are processed.

        While more records wait than a poll brings and ledgers have room, no round waits for another's transaction.
        """
        limit = self._poll_limit.limit(self._readable)
        polled = self._poll(limit)
        now = self._clock()
        over = self._in_flight is not None and (self._in_flight.pending.done() or self.ownership.concerned(polled))
        if over and not self._end():
            polled = replace(polled, membership=None)  # it was captured before that failed
        stayed = self._timed("follow", lambda: self.ownership.follow(polled, now))
        if self._in_flight is None and self._due():
            self._begin()
        began, records = self._clock(), sum(len(part.offsets) for part in polled.slices)
        busy = records >= min(limit / 2, _BUSY)
        self._timed("decode", lambda: self.state.take(_of(polled, stayed), now))
        self._timed("tick", lambda: self.state.tick(self._clock()))
        self._poll_limit.done(records, self._clock() - began)
        if self._in_flight is not None and (not busy or self._urgent()):
            self._end()
        elif self._in_flight is None and self._due():
            self.transact()
        self._regulate()
        self._observe(polled)

    def drain(self) -> None:
        """Form, announce and publish what can be; leave rows without a group to the successor.

        The last quarter of the time is for what was announced: other workers may be leaving too, and a generation that
        ends refuses a transaction until the next one is stable.
        """
        self._end()
        self._transport.pause(list(self.state.partitions))
        began, most = self._clock(), self._settings.drain_seconds
        self.state.flush(began)
        while self.state.unpublished and (spent := self._clock() - began) <= most:
            if spent >= 0.75 * most:
                self.state.formed = []  # never announced: their rows stay unread
            unsure = self.ownership.membership is None
            self.ownership.follow(self._transport.poll(0.1 if unsure else 0.0, 1), self._clock())
            self.transact()
        _log.info("drained", extra={"left_waiting": self.state.waiting})

    # poll

    def _poll(self, limit: int) -> Polled:
        now = self._clock()
        deadline = self.state.engines.next_deadline()
        waits = [_LONGEST_WAIT]
        if deadline is not None:
            waits.append(max(0.0, deadline - now))
        if self.state.unpublished:
            waits.append(self._schedule.wait(now))
        if self._in_flight is not None:
            waits.append(_LOOK_EVERY)
        began = self._clock()
        polled = self._transport.poll(min(waits), limit)
        self._observer.stage("poll", self._clock() - began)
        return polled

    # announce, publish, commit

    def _due(self) -> bool:
        """Tell whether to commit: at the tick, and before that when ledgers are about to be full."""
        if self.ownership.membership is None or not self.state.partitions:
            return False
        now = self._clock()
        if self._urgent():
            return True
        if self.state.unpublished:
            return self._schedule.due(now)
        return now - self._schedule.last >= _TIDY_EVERY

    def _urgent(self) -> bool:
        partitions = self.state.partitions.values()
        if any(p.text is None for p in partitions):
            return True
        return self._unannounced * PER_ROW > 0.6 * self._room

    @property
    def _room(self) -> float:
        """The number of characters that ledgers have left for announced rows."""
        return sum(max(0.0, LIMIT - p.window) for p in self.state.partitions.values())

    @property
    def _readable(self) -> int:
        """The number of records that ledgers have room for. Records that are read again need none.

        1. A portion is what one transaction announces; one that waits for its own may be joined by one more.
        2. All may be of the partition that is fullest: they take a quarter of what it has left, or half with gaps.
        """
        partitions = self.state.partitions.values()
        if not all(p.caught_up for p in partitions):
            return self._settings.poll_records
        portion = int(0.75 * self._room / PER_ROW)
        fullest = max((p.window for p in partitions if p.paused_since is None), default=0.0)
        return min(portion, 2 * portion - self._unannounced, int((LIMIT - fullest) / (4 * PER_OFFSET)))

    @property
    def _unannounced(self) -> int:
        """The number of rows formed that the transaction in progress does not announce."""
        announcing = 0 if self._in_flight is None else rows_of(self._in_flight.plan.taken)
        return rows_of(self.state.formed) - announcing

    def transact(self) -> None:
        """Run one transaction, from its plan to its consequences."""
        self._begin()
        self._end()

    def _begin(self) -> None:
        """Plan and start a transaction.

        Until `_end` the owned partitions stay the same; rows may be read, grouped and given up.

        1. Plan: what was announced is published, what was formed is announced, every ledger fits.
        2. Offsets first, under the captured generation: if it is over, no record becomes visible.
        3. Records.  4. Commit, after every record was taken.
        """
        member = self.ownership.membership
        if member is None:
            return
        began = self._clock()
        plan = self._planner.plan(self.state.partitions, self.state.formed, self.ownership.known)
        planned = self._clock()
        self._observer.stage("announce", planned - began)
        if not plan.texts:
            self._schedule.last = began
            return
        transport, output = self._transport, self._settings.output

        def carry_out() -> None:
            transport.begin()
            transport.send_offsets(plan.texts, member)
            transport.send(plan.records(output))
            transport.commit()

        self._in_flight = InFlight(plan, began, planned - began, transport.run_in_background(carry_out))

    def _end(self) -> bool:
        """Wait for the transaction in progress, if any, and record what is durable; return False if it failed.

        After a failure a new producer aborts what is open, and the ledgers show what happened.
        """
        begun, self._in_flight = self._in_flight, None
        if begun is None:
            return True
        result, plan, waited = "committed", begun.plan, self._clock()
        try:
            begun.pending.result()
        except (AbortableError, OutcomeUnknownError) as error:
            result = "unknown" if isinstance(error, OutcomeUnknownError) else "aborted"
            _log.warning("transaction failed", extra={"result": result, "why": str(error)})
            self.ownership.membership = None  # whatever it was, the next stable capture decides anew
            self._transport.renew()
            self._settle(plan)
            with suppress(AbortableError):  # the broker is not there for the moment
                self.ownership.check_sizes(self._clock())
        else:
            self._apply(plan)
        ended = self._clock()
        self._schedule.done(begun.began, begun.took + ended - waited)
        self._observer.stage("commit", ended - waited)
        self._observer.transaction(result, ended - begun.began)
        return result == "committed"

    def _settle(self, plan: Plan) -> None:
        """Read the ledgers after a failure, to learn whether it was committed and who wrote since."""
        texts = self._transport.ledgers(set(plan.texts))
        before = {number: self.state.partitions[number].text for number in plan.texts}
        if any(number in texts and texts[number] == text for number, text in plan.texts.items()):
            self._apply(plan)
            before = dict(plan.texts)
        for number, text in before.items():
            if number not in texts or texts[number] != text:
                self.ownership.forget(number, self._clock())

    def _apply(self, plan: Plan) -> None:
        """Record that a transaction is durable: its announced groups are kept, its published ones forgotten."""
        now, wall = self._clock(), time.time()
        for number, ledger in plan.ledgers.items():
            partition = self.state.partitions[number]
            partition.committed(ledger, plan.texts[number], plan.finished[number], plan.homes.get(number, []))
            if number not in plan.held:
                del partition.letters[: plan.letters_sent[number]]
            self._observer.ledger(number, len(plan.texts[number].metadata))
        for formed in plan.taken:
            formed.group = None
        self.state.formed = [formed for formed in self.state.formed if formed.group is not None]
        if plan.publish:
            self._report(plan.publish, now, wall)

    def _report(self, groups: list[Formed], now: float, wall: float) -> None:
        delays = now - np.concatenate([group.arrived for group in groups])
        born = [np.full(len(group.arrived), np.nan) if group.born is None else group.born for group in groups]
        self._observer.published(
            [group.reason for group in groups],
            [len(group.arrived) for group in groups],
            delays,
            wall - np.concatenate(born),
            np.array([group.losses for group in groups]),
        )
        for group in groups:
            for name, count in group.raised.items():
                self._observer.raised(name, count)
        bound = self._settings.delay
        if bound is not None and (late := int((delays > bound).sum())):
            self._observer.missed(late)

    # keep within limits

    def _regulate(self) -> None:
        """Pause a partition whose ledger is nearly full until it drains; all of them while too many rows wait."""
        now, settings = self._clock(), self._settings
        crowded = self.state.crowded
        for number, partition in self.state.partitions.items():
            full = partition.window / LIMIT
            if number not in self._paused and partition.caught_up and (full > settings.pause_at or crowded):
                self._transport.pause([number])
                self._paused.add(number)
                partition.paused_since = now
            elif number in self._paused and partition.paused_since is None:
                self._paused.discard(number)  # it was given anew and resumed by whoever restored it
            elif number in self._paused and full < settings.resume_at and not crowded:
                self._transport.resume([number])
                self._paused.discard(number)
                partition.paused_since = None
            elif partition.paused_since is not None and now - partition.paused_since > self._patience:
                self.state.force(number, now)
                partition.paused_since = now
        self._paused &= set(self.state.partitions)

    @property
    def _patience(self) -> float:
        """The seconds a full partition may wait for its rows to leave by their deadlines."""
        return 5.0 if self._settings.delay is None else 1.5 * self._settings.delay

    # observe

    def _observe(self, polled: Polled) -> None:
        for number, end in {**polled.ends, **self._ends_of_paused()}.items():
            if number in self.state.partitions:
                self._observer.lag(number, max(0, end - self.state.partitions[number].position))
        self._observer.buffered(self.state.waiting, self._oldest(), self.state.engines.open_clusters)
        self._observer.alive()

    def _ends_of_paused(self) -> dict[int, int]:
        """Ask the broker now and then for the ends of paused partitions: the client only hears of those it reads."""
        now = self._clock()
        if self._paused and now - self._asked >= _ASK_EVERY:
            self._asked = now
            with suppress(AbortableError):  # the broker is not there for the moment
                self._ends = {number: end for number, (_, end) in self._transport.bounds(self._settings.input).items()}
        return {number: self._ends[number] for number in self._paused & self._ends.keys()}

    def _oldest(self) -> float:
        """Return the age of the row that waits longest in an engine, derived from its deadline."""
        deadline, bound = self.state.engines.next_deadline(), self._settings.delay
        if deadline is None or bound is None:
            return 0.0
        return max(0.0, self._clock() - (deadline - engine_bound(bound)))

    def _timed(self, stage: str, call: Callable[[], _T]) -> _T:
        began = self._clock()
        result = call()
        self._observer.stage(stage, self._clock() - began)
        return result


def _of(polled: Polled, partitions: frozenset[int]) -> Polled:
    """Return the part of a poll that concerns `partitions`: those restored since have another position now."""
    return replace(
        polled,
        slices=tuple(part for part in polled.slices if part.partition in partitions),
        positions={number: at for number, at in polled.positions.items() if number in partitions},
    )
