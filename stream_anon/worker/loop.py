"""The loop: poll, decode and slice, push and tick, announce, publish what was announced, commit, observe.

One thread, one transaction. It decides when; what is in a transaction is the planner's business, which partitions are
ours is that of `ownership`, and how much may be read that of `throttle`.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from stream_anon.errors import PrivacyViolation
from stream_anon.kafka.transport import AbortableError, Committed, OutcomeUnknownError, Pending, Polled, Transport
from stream_anon.observe.live.status import PartitionFacts
from stream_anon.observe.observer import Observer
from stream_anon.worker.core import Core
from stream_anon.worker.ledger.mark import MarkSeal
from stream_anon.worker.ledger.topic import store_of
from stream_anon.worker.pace.schedule import CommitSchedule, PollLimit
from stream_anon.worker.pace.throttle import Throttle
from stream_anon.worker.pace.unread import Unread
from stream_anon.worker.planner import Plan, Planner
from stream_anon.worker.reporter import Reporter
from stream_anon.worker.settings import WorkerSettings
from stream_anon.worker.state.state import WorkerState
from stream_anon.worker.takeover.ownership import Ownership
from stream_anon.worker.takeover.restore import OtherPolicyError
from stream_anon.worker.takeover.standing import standing_of

_log = logging.getLogger("stream_anon.worker")
_LONGEST_WAIT = 0.2  # seconds in one poll: how late a stop or a rebalance may be noticed
_BUSY = 1_000  # records in one poll from which on more are sure to wait
_LOOK_EVERY = 0.01  # seconds in one poll while a transaction is under way
_TIDY_EVERY = 1.0  # seconds between commits that only move positions


@dataclass(frozen=True, slots=True)
class InFlight:
    """A transaction in progress, and the time it has cost the loop so far, in seconds.

    `texts` is what it commits beside the offsets, as soon as that is known; `announcing` the number of rows it names.
    """

    plan: Plan
    announcing: int
    texts: Mapping[int, Committed]
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
        self._store = store_of(transport, settings.ledger, core.key)
        self._budget = self._store.budget
        self._observer = observer or Observer()
        self.state = WorkerState(core, settings, self._observer)
        self.ownership = Ownership(transport, self.state, core, settings, self._observer, self._store)
        self.throttle = Throttle(transport, settings, self._budget)
        self._unread = Unread(transport, core.learn) if core.learn else None
        self._schedule = CommitSchedule(settings.delay)
        self._poll_limit = PollLimit(settings.poll_records, settings.delay)
        writer = secrets.randbits(32) if writer is None else writer
        self._planner = Planner(self._store.codec, MarkSeal.of(core.key), core.fingerprint, writer, self._budget)
        self._reporter = Reporter(self._observer, transport, settings, clock)
        self._in_flight: InFlight | None = None
        self._stop = False

    def stop(self) -> None:
        """Ask the loop to drain and end; safe to call from a signal handler, or from another thread."""
        self._stop = True
        self.state.round.end()

    @property
    def ready(self) -> bool:
        """Whether all assigned partitions are being processed, and will be."""
        return self.ownership.complete and not self._stop

    @property
    def positions(self) -> dict[int, int]:
        """The next offset to read of each partition; another thread may ask."""
        return {number: partition.position for number, partition in dict(self.state.partitions).items()}

    @property
    def unready(self) -> str:
        """Why not all assigned partitions are being processed, empty if they are; another thread may ask."""
        return "stopping" if self._stop else self.ownership.lacking

    @property
    def standing(self) -> list[PartitionFacts]:
        """The state of each assigned partition; another thread may ask."""
        return standing_of(self.ownership, list(self.throttle.paused))

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
        """Run one round.

        While more records wait than a poll brings and ledgers have room, no round waits for its own transaction: the
        next one reads and groups meanwhile.
        """
        limit = self._poll_limit.limit(self.throttle.readable(self.state, self._unannounced))
        polled = self._poll(limit)
        self.state.round.start()
        now, news = self._clock(), polled.news
        if self._in_flight is not None and (self._in_flight.pending.done() or self.ownership.concerned(news)):
            if not self._end():
                news = news._replace(membership=None)  # it was captured before that failed
            self._reporter.start()
        stayed = self.ownership.follow(news, now)
        self._reporter.lap("follow")
        rows = self.state.decode(polled, stayed, now)
        if rows is not None:
            self.state.push(rows, now)
        took = self._reporter.lap("decode")
        self.state.tick(self._clock())
        records = sum([len(part.offsets) for part in polled.slices])
        self._poll_limit.done(records, took + self._reporter.lap("tick"))
        self._transact_if_due(busy=records >= min(limit / 2, _BUSY))
        self.throttle.regulate(self.state, self._clock())
        if self._unread is not None:
            self._unread.resume(self.state, frozenset(self.throttle.paused), self._clock())
        self._reporter.observe(polled.ends, self.state, self.throttle.paused)

    def drain(self) -> None:
        """Form, announce and publish what can be; leave rows without a group to the successor.

        Half of the time is for forming, and the last quarter for what was announced: other workers may be leaving too,
        and a generation that ends refuses a transaction until the next one is stable.
        """
        self._end()
        self.ownership.leave()
        self._transport.pause(list(self.state.partitions))
        began, most = self._clock(), self._settings.drain_seconds
        self.state.flush(began, lambda: self._clock() - began < most / 2)
        while self.state.unpublished and (spent := self._clock() - began) <= most:
            if spent >= 0.75 * most:
                self.state.give_up_forming()
            unsure = self.ownership.membership is None
            self.ownership.follow(self._transport.poll(0.1 if unsure else 0.0, 1).news, self._clock())
            self.transact()
        _log.info("drained", extra={"left_waiting": self.state.waiting})

    # poll

    def _poll(self, limit: int) -> Polled:
        """Wait for records: not beyond a deadline, the tick of commits, or the end of a transaction."""
        self._reporter.start()
        now = self._clock()
        deadline = self.state.engines.next_deadline()
        waits = [_LONGEST_WAIT]
        if deadline is not None and not self.state.laden:
            waits.append(max(0.0, deadline - now))
        if self.state.unpublished:
            waits.append(self._schedule.wait(now))
        if self._in_flight is not None:
            waits.append(_LOOK_EVERY)
        polled = self._transport.poll(min(waits), limit)
        if self._unread is not None:
            polled = self._unread.keep_back(polled, self._clock())
        self._reporter.lap("poll")
        return polled

    # announce, publish what was announced, commit

    @property
    def _unannounced(self) -> int:
        """The number of rows formed that the transaction in progress does not announce."""
        return self.state.formed_rows - (0 if self._in_flight is None else self._in_flight.announcing)

    def transact(self, wait: bool = True) -> None:
        """Run a transaction: announce what was formed, publish what was announced, commit.

        Unless told to `wait`, go on while it is in progress.
        """
        self._begin()
        if wait:
            self._end()

    def _transact_if_due(self, busy: bool) -> None:
        """Run a transaction at the tick, and wait for it unless more records are sure to wait for us."""
        if self._in_flight is not None and (not busy or self._urgent()):
            self._end()
        if self._in_flight is None and self._due():
            self.transact(wait=not busy)

    def _urgent(self) -> bool:
        """Tell whether a ledger is about to be full, or a partition has none yet."""
        if any(partition.text is None for partition in self.state.partitions.values()):
            return True
        return self._budget.urgent(self.state.windows, self._unannounced)

    def _due(self) -> bool:
        """Tell whether to commit: at the tick, and before that when it is urgent."""
        if self.ownership.membership is None or not self.state.partitions:
            return False
        now = self._clock()
        if self.state.unpublished:
            return self._schedule.due(now) or self._urgent()
        return now - self._schedule.last >= _TIDY_EVERY

    def _begin(self) -> None:
        """Plan and start a transaction. Until `_end` the owned partitions stay the same.

        Rows may be read, grouped and given up meanwhile.
        """
        member = self.ownership.membership
        if member is None:
            return
        began = self._clock()
        self._reporter.start()
        known, seen = self.ownership.known, self.ownership.witness.seen
        plan = self._planner.plan(self.state.partitions, self.state.formed, known, seen)
        took = self._reporter.lap("announce")
        if not plan.drafts:
            self._schedule.skip(began)
            return
        transport, output, texts = self._transport, self._settings.output, dict[int, Committed]()

        def carry_out() -> None:
            transport.begin()
            texts.update(self._store.keep(plan.texts))  # what the offsets point to comes first
            transport.send_offsets(texts, member)  # announce; refused if the captured generation is over
            transport.send(plan.records(output))  # publish what was announced
            transport.commit()  # after every record was taken

        rows = sum(map(len, plan.announcing))
        self._in_flight = InFlight(plan, rows, texts, began, took, transport.run_in_background(carry_out))

    def _end(self) -> bool:
        """Wait for the transaction in progress, if any, and record what is durable; return False if it failed.

        After a failure a new producer aborts what is open, and the ledgers show what happened.
        """
        begun, self._in_flight = self._in_flight, None
        if begun is None:
            return True
        self._reporter.start()
        result = "committed"
        try:
            begun.pending.result()
        except (AbortableError, OutcomeUnknownError) as error:
            result = "unknown" if isinstance(error, OutcomeUnknownError) else "aborted"
            _log.warning("transaction failed", extra={"result": result, "why": str(error)})
            self.ownership.distrust()
            self._transport.renew()
            self._settle(begun)
            with suppress(AbortableError):  # the broker is not there for the moment
                self.ownership.check_sizes(self._clock())
        else:
            self._commit(begun)
        took = self._reporter.lap("commit")
        self._schedule.done(begun.began, begun.took + took)
        self._observer.transaction(result, self._clock() - begun.began)
        return result == "committed"

    def _settle(self, begun: InFlight) -> None:
        """Read the ledgers after a failure, to learn whether it was committed and who wrote since."""
        texts = self._transport.ledgers(set(begun.plan.drafts))
        if any(number in texts and texts[number] == text for number, text in begun.texts.items()):
            self._commit(begun)
        for number in begun.plan.drafts:
            if number not in texts or texts[number] != self.state.partitions[number].text:
                self.ownership.forget(number, self._clock())

    def _commit(self, begun: InFlight) -> None:
        """Record that a plan is durable, and report what became visible."""
        published = self.state.commit(begun.plan, begun.texts)
        for number, draft in begun.plan.drafts.items():
            self._observer.ledger(number, len(begun.texts[number].metadata), len(draft.text.metadata))
        self._reporter.published(published, self._clock(), time.time())
