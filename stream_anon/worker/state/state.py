"""The state of a worker between polls: its partitions, rows in engines, groups formed; never talks to a broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, compress, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from stream_anon.errors import StreamAnonError
from stream_anon.kafka.transport import Polled, Ref
from stream_anon.observe.observer import Observer
from stream_anon.worker.groups import Core, Formed, Ints
from stream_anon.worker.ledger.ledger import Offsets
from stream_anon.worker.renderer import GroupRenderer
from stream_anon.worker.settings import WorkerSettings
from stream_anon.worker.state.engines import Engines
from stream_anon.worker.state.letters import dead_letter, without_payload
from stream_anon.worker.state.partition import Partition
from stream_anon.worker.unusable import UNUSABLE, encode_usable, log_failure


class WorkerState:
    """The state of a worker between polls.

    Rows enter by `take` and leave by `formed`; `drop` removes a lost partition from all of it. Rows an
    engine had no room for return to it later, as do those it gave up while a partition was not yet read again to where
    its predecessor had been: the rows they lack may still come.
    """

    def __init__(self, core: Core, settings: WorkerSettings, observer: Observer) -> None:
        self.partitions: dict[int, Partition] = {}
        self.formed: list[Formed] = []
        self.engines = Engines(core.engine, apart=settings.apart)
        self.largest = self.largest_letter = 1_000_000
        self._back: list[Any] = []
        self._core, self._settings, self._observer = core, settings, observer
        self.renderer = GroupRenderer(core)

    @property
    def waiting(self) -> int:
        """The number of rows read and not finished."""
        return sum(len(partition.waiting) for partition in self.partitions.values())

    @property
    def crowded(self) -> bool:
        """Whether an engine was full."""
        return bool(self._back) or self.waiting > self._settings.most_waiting

    @property
    def unpublished(self) -> bool:
        """Whether a transaction would publish, announce or report something."""
        return bool(self.formed) or any(p.announced or p.letters or p.text is None for p in self.partitions.values())

    def take(self, polled: Polled, now: float) -> None:
        """Decode and slice what a poll brought of our partitions, and push it."""
        refs: list[Ints] = []
        values: list[bytes | None] = []
        for part in polled.slices:
            partition = self.partitions.get(part.partition)
            if partition is None:
                continue
            position = polled.positions.get(part.partition, part.offsets[-1] + 1)
            keep = partition.read(part.offsets, part.timestamps, position)
            values += part.values if keep.all() else compress(part.values, keep)
            refs.append(_refs(part.partition, np.asarray(part.offsets, dtype=np.int64)[keep]))
        for number, position in polled.positions.items():
            if number in self.partitions:
                self.partitions[number].move(position)
        if not values:
            return
        self._observer.consumed(len(values))
        ref = np.concatenate(refs)
        encoded, bad, good = encode_usable(self._core.encode, values, ref, np.full(len(values), now))
        places = [(int(good[r.index]), str(r.code), r.column) for r in encoded.rejections]
        places += [(i, UNUSABLE, None) for i in bad]
        self._reject([(_ref(ref, i), code, column, values[i]) for i, code, column in places])
        self._push(encoded.batch, now)

    def tick(self, now: float) -> None:
        """Release the rows that are due."""
        back, self._back = self._back, []
        for rows in back:
            self._push(rows, now)
        self._release_chosen(self.engines.tick(now), now)

    def flush(self, now: float) -> None:
        """Form every group that can be formed; rows without one stay unfinished, for the successor."""
        for outcome in self.engines.flush():
            self._form(outcome.groups, now)

    def force(self, number: int, now: float) -> None:
        """Form what can be formed and give up the older half of a partition whose ledger stays full."""
        partition = self.partitions[number]
        old = partition.waiting[len(partition.waiting) // 2] if len(partition.waiting) else 0
        for outcome in list(self.engines.flush()):
            self._form(outcome.groups, now)
            rows = outcome.suppressed
            if rows is not None and len(rows):
                give_up = (rows.ref[:, 0] == number) & (rows.ref[:, 1] <= old)
                self._finish(rows.ref[give_up], "ledger_full")
                self._back.append(rows.take(~give_up))

    def limit(self, largest: int, now: float) -> int:
        """Accept no larger records from now on, reject those of formed groups; return the largest announced size."""
        if largest < self.largest:
            self.largest, formed, self.formed = largest, self.formed, []
            for each in formed:
                if max(map(len, each.records)) > largest:
                    self._part(each, now)
                else:
                    self.formed.append(each)
        announced = [each for partition in self.partitions.values() for each in partition.announced]
        return max((len(record) for each in announced for record in each.records), default=0)

    def limit_letters(self, largest: int) -> None:
        """Keep no payload in a dead letter that its topic does not take."""
        self.largest_letter = min(self.largest_letter, largest)
        for partition in self.partitions.values():
            long = [len(letter.values[0]) > largest for letter in partition.letters]
            if any(long):
                pairs = zip(partition.letters, long, strict=True)
                partition.letters = [without_payload(letter) if is_long else letter for letter, is_long in pairs]

    def drop(self, number: int, now: float) -> None:
        """Forget a partition: remove its rows from the engine, and dissolve formed groups with any of them."""
        partition = self.partitions.pop(number, None)
        if partition is None:
            return
        self.engines.remove(number, _refs(number, partition.waiting))
        self._back = [rows.take(rows.ref[:, 0] != number) for rows in self._back]
        dissolved = [formed for formed in self.formed if (formed.members[:, 0] == number).any()]
        self.formed = [formed for formed in self.formed if formed not in dissolved]
        for formed in dissolved:
            rows = formed.group.rows
            rest = rows.take(rows.ref[:, 0] != number)
            if len(rest):
                self._push(rest, now)

    def _push(self, rows: Any, now: float) -> None:
        """Push rows; those that find no room come back, and reading stops until something has left."""
        for outcome, rest in list(self.engines.push(rows, now)):
            self._release_chosen([outcome], now)
            if len(rest):
                self._back.append(rest)

    def _release_chosen(self, outcomes: Iterable[Any], now: float) -> None:
        for outcome in list(outcomes):
            self._form(outcome.groups, now)
            rows = outcome.suppressed
            if rows is None or not len(rows):
                continue
            if all(partition.caught_up for partition in self.partitions.values()):
                self._finish(rows.ref, "deadline")
            else:
                self._back.append(rows)

    def _form(self, groups: Sequence[Any], now: float) -> None:
        """Fix the bytes of groups. A record too large to be sent is rejected before its group is announced."""
        fixed = self._fix(groups, now) if groups else []
        large = [formed for formed in fixed if max(map(len, formed.records)) > self.largest]
        good = [formed for formed in fixed if formed not in large] if large else fixed
        self._date(good)
        self.formed += good
        for formed in large:
            self._part(formed, now)

    def _fix(self, groups: Sequence[Any], now: float) -> list[Formed]:
        """Fix the bytes of groups, one by one if they cannot be written together; a row that cannot be is rejected."""
        try:
            return self.renderer.fix(groups)
        except StreamAnonError:
            raise
        except Exception as error:
            if len(groups) > 1:
                return [formed for group in groups for formed in self._fix([group], now)]
            rows = groups[0].rows
            bad = ~np.array(self._core.writable(rows), dtype=np.bool_)
            if not bad.any():
                raise
            log_failure("write", error, int(bad.sum()))
            self._give_up(rows, bad, UNUSABLE, now)
            return []

    def _part(self, formed: Formed, now: float) -> None:
        """Reject the rows whose records are too large."""
        large = np.array([len(record) > self.largest for record in formed.records])
        self._give_up(formed.group.rows, large, "oversized", now)

    def _give_up(self, rows: Any, bad: npt.NDArray[np.bool_], code: str, now: float) -> None:
        """Reject rows of a group that was not announced; push the others again."""
        self._reject([((p, o), code, None, None) for p, o in rows.ref[bad].tolist()])
        if not bad.all():
            self._push(rows.take(~bad), now)

    def _date(self, groups: Sequence[Formed]) -> None:
        """Report the records' own times, in no particular order."""
        if not groups:
            return
        ref = np.concatenate([formed.members for formed in groups])
        born = np.empty(len(ref))
        for number in np.unique(ref[:, 0]).tolist():
            mine = ref[:, 0] == number
            born[mine] = self.partitions[number].born_at(ref[mine, 1])
        ends = accumulate([len(formed.members) for formed in groups], initial=0)
        for formed, (first, last) in zip(groups, pairwise(ends), strict=True):
            formed.born = born[first:last]

    def _finish(self, ref: Ints, reason: str) -> None:
        for number in np.unique(ref[:, 0]).tolist():
            self.partitions[number].finish(ref[ref[:, 0] == number, 1])
        if len(ref):
            self._observer.suppressed(reason, len(ref))

    def _reject(self, rejected: Sequence[tuple[Ref, str, str | None, bytes | None]]) -> None:
        """Finish and count records that cannot be rows, and write a dead letter for each."""
        if not rejected:
            return
        ref = np.array([ref for ref, *_ in rejected], dtype=np.int64)
        for number in np.unique(ref[:, 0]).tolist():
            self.partitions[number].finish(ref[ref[:, 0] == number, 1])
        for code, records in Counter(code for _, code, *_ in rejected).items():
            self._observer.rejected(code, records)
        settings = self._settings
        if settings.dead_letter is None:
            return
        for (number, offset), code, column, value in rejected:
            kept = settings.dead_letter_payload and value is not None and len(value) <= self.largest_letter // 2
            letter = dead_letter(
                settings.dead_letter, settings.input, number, offset, code, column, value if kept else None
            )
            self.partitions[number].letters.append(letter)


def _ref(ref: Ints, index: int) -> Ref:
    return int(ref[index, 0]), int(ref[index, 1])


def _refs(number: int, offsets: Offsets) -> Ints:
    ref = np.empty((len(offsets), 2), dtype=np.int64)
    ref[:, 0], ref[:, 1] = number, offsets
    return ref
