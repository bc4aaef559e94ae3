"""The state of a worker between polls: its partitions, rows in engines, groups formed; never talks to a broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import compress

import numpy as np
import numpy.typing as npt

from stream_anon.core.batch import Batch
from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.errors import StreamAnonError
from stream_anon.kafka.transport import Committed, Polled, Ref
from stream_anon.observe.observer import Observer
from stream_anon.stream import Outcome
from stream_anon.worker.core import Core
from stream_anon.worker.group_life import Formed, Published
from stream_anon.worker.ledger.ledger import Offsets
from stream_anon.worker.pace.round_budget import RoundBudget
from stream_anon.worker.planner import Plan
from stream_anon.worker.settings import WorkerSettings
from stream_anon.worker.state.engines import Engines
from stream_anon.worker.state.letters import dead_letter
from stream_anon.worker.state.partition import Partition
from stream_anon.worker.takeover.renderer import GroupRenderer
from stream_anon.worker.unusable import UNUSABLE, log_failure, unusable

_FEW, _SHARE = 50_000, 16
"""So many rows, or of many that wait one in so many, may have left the engines without being announced: its
bytes lie beside its values then."""


class WorkerState:
    """The state of a worker between polls; only its own methods change it.

    `partitions` are those that are owned, `formed` the groups, of `formed_rows`, that no ledger names yet. Rows enter
    by `decode` and `push` and leave by `formed`; `drop` removes a lost partition from all of it. Rows an engine had no
    room for return to it later, as do those it gave up while a partition was not yet read again to where its
    predecessor had been: the rows they lack may still come.
    """

    def __init__(self, core: Core, settings: WorkerSettings, observer: Observer) -> None:
        self.partitions: dict[int, Partition] = {}
        self.formed: list[Formed] = []
        self.formed_rows = 0
        self.engines = Engines(core.engine, apart=settings.apart)
        self.renderer = GroupRenderer(core)
        self.round = RoundBudget(settings.delay)
        self._back: list[Batch] = []
        self._largest = self._largest_letter = 1_000_000
        self._core, self._settings, self._observer = core, settings, observer

    @property
    def waiting(self) -> int:
        """The number of rows read and not finished."""
        return sum([len(partition.waiting) for partition in self.partitions.values()])

    @property
    def windows(self) -> list[float]:
        """What the offsets of each partition may come to take in its ledger."""
        return [partition.window for partition in self.partitions.values()]

    @property
    def caught_up(self) -> bool:
        """Whether everything that predecessors had read was read again."""
        return all(partition.caught_up for partition in self.partitions.values())

    @property
    def crowded(self) -> bool:
        """Whether an engine was full."""
        return bool(self._back) or self.waiting > self._settings.most_waiting

    @property
    def laden(self) -> bool:
        """Whether so many rows have left the engines that those announced come first."""
        waiting = self.waiting
        return waiting - len(self.engines) - sum(map(len, self._back)) > max(_FEW, waiting // _SHARE)

    @property
    def unpublished(self) -> bool:
        """Whether a transaction would publish, announce or report something."""
        partitions = self.partitions.values()
        return bool(self.formed) or any(p.announced or p.letters or p.text is None for p in partitions)

    # what enters

    def adopt(self, number: int, partition: Partition) -> None:
        """Take over a partition as its ledger left it."""
        self.partitions[number] = partition

    def decode(self, polled: Polled, mine: Collection[int], now: float) -> Batch | None:
        """Decode and slice what a poll brought of the partitions `mine`; report what cannot become a row."""
        refs: list[Ints] = []
        values: list[bytes | None] = []
        for part in polled.slices:
            if part.partition in mine:
                offsets = np.asarray(part.offsets, dtype=np.int64)
                position = polled.positions.get(part.partition, part.offsets[-1] + 1)
                keep = self.partitions[part.partition].read(offsets, part.timestamps, position)
                values += part.values if keep.all() else compress(part.values, keep)
                refs.append(_refs(part.partition, offsets[keep]))
        for number, position in polled.positions.items():
            if number in mine:
                self.partitions[number].move(position)
        if not values:
            return None
        self._observer.consumed(len(values))
        ref = np.concatenate(refs)
        arrived = np.full(len(values), now)
        try:
            encoded = self._core.encode(values, ref, arrived)
        except StreamAnonError:
            raise
        except Exception as error:
            bad = unusable(self._core, values, ref, arrived, error)
            self._reject([(_ref(ref, i), UNUSABLE, None, values[i]) for i in bad])
            good = np.delete(np.arange(len(values)), bad)
            values, ref = [values[i] for i in good], ref[good]
            encoded = self._core.encode(values, ref, arrived[good])
        if encoded.rejections:
            self._reject([(_ref(ref, r.index), str(r.code), r.column, values[r.index]) for r in encoded.rejections])
        return encoded.batch

    def push(self, rows: Batch, now: float) -> None:
        """Push rows; those that find no room come back, and reading stops until something has left."""
        for outcome, rest in self.engines.push(rows, now, self._more):
            self._release([outcome], now)
            if len(rest):
                self._back.append(rest)

    def tick(self, now: float) -> None:
        """Release the rows that are due, and push again what came back, as far as the round allows."""
        back, most = self._back, self._settings.poll_records
        pieces = [rows.take(slice(at, at + most)) for rows in back for at in range(0, len(rows), most)]
        self._back, pushed = [], 0
        for rows in pieces:
            if pushed and not self.round.more():
                break
            self.push(rows, now)
            pushed += 1
        self._back += pieces[pushed:]
        if not self.laden:
            self._release(self.engines.tick(now, self._more), now)

    def _more(self) -> bool:
        """Tell whether another group may be looked for in this round."""
        return self.round.more() and not self.laden

    # what leaves

    def flush(self, now: float, more: Callable[[], bool]) -> None:
        """Form groups of all that waits, while `more` says so; rows without one stay unfinished, for the successor."""
        for outcome in self.engines.flush(more):
            self._form(outcome.groups, now)

    def give_up_forming(self) -> None:
        """Forget the groups that no ledger names: their rows stay unfinished, for the successor."""
        self._keep([])

    def force(self, number: int, now: float) -> None:
        """Form what can be formed and give up the older half of a partition whose ledger stays full."""
        waiting = self.partitions[number].waiting
        old = waiting[len(waiting) // 2] if len(waiting) else 0
        for outcome in self.engines.flush():
            self._form(outcome.groups, now)
            rows = outcome.suppressed
            if rows is not None and len(rows):
                give_up = (rows.ref[:, 0] == number) & (rows.ref[:, 1] <= old)
                self._suppress(rows.ref[give_up], "ledger_full")
                self._back.append(rows.take(~give_up))

    def commit(self, plan: Plan, texts: Mapping[int, Committed]) -> list[Published]:
        """Record that a plan is durable by these texts: what it announced is announced; return what became visible."""
        published = []
        for number, draft in plan.drafts.items():
            published += self.partitions[number].commit(draft, texts[number])
        if plan.announcing:
            taken = set(map(id, plan.announcing))
            self._keep([formed for formed in self.formed if id(formed) not in taken])
        return published

    def _keep(self, formed: list[Formed]) -> None:
        """Let these be the groups that no ledger names yet."""
        self.formed, self.formed_rows = formed, sum(map(len, formed))

    def drop(self, number: int, now: float) -> None:
        """Forget a partition: remove its rows from the engine, and dissolve formed groups with any of them."""
        partition = self.partitions.pop(number, None)
        if partition is None:
            return
        self.engines.remove(number, _refs(number, partition.waiting))
        self._back = [rows.take(rows.ref[:, 0] != number) for rows in self._back]
        hit = [bool((formed.members[:, 0] == number).any()) for formed in self.formed]
        dissolved = list(compress(self.formed, hit))
        self._keep([formed for formed, gone in zip(self.formed, hit, strict=True) if not gone])
        for formed in dissolved:
            rows = formed.group.rows
            rest = rows.take(rows.ref[:, 0] != number)
            if len(rest):
                self.push(rest, now)

    # sizes of records

    def limit(self, largest: int, now: float) -> int:
        """Accept no larger records from now on, reject those of formed groups; return the largest announced size."""
        if largest < self._largest:
            self._largest, formed = largest, self.formed
            large = [max(map(len, each.records)) > largest for each in formed]
            self._keep([each for each, over in zip(formed, large, strict=True) if not over])
            for each in compress(formed, large):
                self._part(each, now)
        announced = [each for partition in self.partitions.values() for each in partition.announced]
        return max((len(record) for each in announced for record in each.records), default=0)

    def limit_letters(self, largest: int) -> None:
        """Keep no payload in a dead letter that its topic does not take."""
        self._largest_letter = min(self._largest_letter, largest)
        for partition in self.partitions.values():
            partition.shorten_letters(largest)

    def _release(self, outcomes: Iterable[Outcome], now: float) -> None:
        for outcome in outcomes:
            if outcome.groups:
                self._form(outcome.groups, now)
            rows = outcome.suppressed
            if rows is None or not len(rows):
                continue
            if self.caught_up:
                self._suppress(rows.ref, "deadline")
            else:
                self._back.append(rows)

    def _form(self, groups: Sequence[Group], now: float) -> None:
        """Fix the bytes of groups. A record too large to be sent is rejected before its group is announced."""
        if not groups:
            return
        try:
            fixed = self.renderer.fix(groups, self._born(np.concatenate([group.members for group in groups])))
        except StreamAnonError:
            raise
        except Exception as error:
            self._form_apart(groups, error, now)
            return
        for formed in fixed:
            if max(map(len, formed.records)) <= self._largest:
                self.formed.append(formed)
                self.formed_rows += len(formed)
            else:
                self._part(formed, now)

    def _form_apart(self, groups: Sequence[Group], error: Exception, now: float) -> None:
        """Form groups one by one that cannot be written together; reject the rows that cannot be written at all."""
        if len(groups) > 1:
            for group in groups:
                self._form([group], now)
            return
        rows = groups[0].rows
        bad = ~np.array(self._core.writable(rows), dtype=np.bool_)
        if not bad.any():
            raise error
        log_failure("write", error, int(bad.sum()))
        self._give_up(rows, bad, UNUSABLE, now)

    def _born(self, ref: Ints) -> Floats:
        """Return the own times of records that wait."""
        born = np.empty(len(ref))
        for number in np.unique(ref[:, 0]).tolist():
            mine = ref[:, 0] == number
            born[mine] = self.partitions[number].born_at(ref[mine, 1])
        return born

    def _part(self, formed: Formed, now: float) -> None:
        """Reject the rows whose records are too large."""
        large = np.array([len(record) > self._largest for record in formed.records])
        self._give_up(formed.group.rows, large, "oversized", now)

    def _give_up(self, rows: Batch, bad: npt.NDArray[np.bool_], code: str, now: float) -> None:
        """Reject rows of a group that was not announced; push the others again."""
        self._reject([((p, o), code, None, None) for p, o in rows.ref[bad].tolist()])
        if not bad.all():
            self.push(rows.take(~bad), now)

    def _suppress(self, ref: Ints, reason: str) -> None:
        self._finish(ref)
        if len(ref):
            self._observer.suppressed(reason, len(ref))

    def _finish(self, ref: Ints) -> None:
        for number in np.unique(ref[:, 0]).tolist():
            self.partitions[number].finish(ref[ref[:, 0] == number, 1])

    def _reject(self, rejected: Sequence[tuple[Ref, str, str | None, bytes | None]]) -> None:
        """Finish and count records that cannot be rows, and write a dead letter for each."""
        self._finish(np.array([ref for ref, *_ in rejected], dtype=np.int64).reshape(-1, 2))
        for code, records in Counter(code for _, code, *_ in rejected).items():
            self._observer.rejected(code, records)
        settings = self._settings
        if settings.dead_letter is None:
            return
        for (number, offset), code, column, value in rejected:
            kept = settings.dead_letter_payload and value is not None and len(value) <= self._largest_letter // 2
            letter = dead_letter(
                settings.dead_letter, settings.input, number, offset, code, column, value if kept else None
            )
            self.partitions[number].report(letter)


def _ref(ref: Ints, index: int) -> Ref:
    return int(ref[index, 0]), int(ref[index, 1])


def _refs(number: int, offsets: Offsets) -> Ints:
    ref = np.empty((len(offsets), 2), dtype=np.int64)
    ref[:, 0], ref[:, 1] = number, offsets
    return ref
