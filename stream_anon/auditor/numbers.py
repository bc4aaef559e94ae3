"""Turn chunks into rows of numbers, some 50 bytes each, and check labels, values, losses and ids on the way."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from stream_anon.auditor.findings import Findings
from stream_anon.auditor.policy import Rules
from stream_anon.auditor.reading.chunks import Chunk, Coded
from stream_anon.auditor.reading.lines import key_of
from stream_anon.auditor.scales.base import Scale, text
from stream_anon.auditor.values import UNKNOWN_CODE

Rows = npt.NDArray[np.void]
Groups = npt.NDArray[np.uint64]
Label = tuple[Any, ...]

_REMEMBERED = 100_000
"""Labels of an attribute kept with what they say."""

_EXACT = 1e-9

_ROUNDED = 0.5e-4 + 1e-7
"""The loss is published with four decimals."""


class _Labels(dict[Any, int]):
    """The labels of one attribute seen so far, numbered and parsed once: what each can lose, or what is wrong."""

    def __init__(self, scale: Scale) -> None:
        super().__init__()
        self._scale = scale
        self.least: list[float] = []
        self.most: list[float] = []
        self.faults: dict[int, str] = {}

    def __missing__(self, label: Any) -> int:
        number = self[label] = len(self.least)
        reading = self._scale.read(label)
        if isinstance(reading, str):
            self.faults[number] = reading
        self.least.append(0.0 if isinstance(reading, str) else reading.least)
        self.most.append(1.0 if isinstance(reading, str) else reading.most)
        return number

    def make_room(self) -> None:
        """Forget all labels if there are too many; between two chunks that changes no result."""
        if len(self) > _REMEMBERED:
            self.clear()
            self.least, self.most, self.faults = [], [], {}


class Numbers:
    """A converter of chunks into rows that notes what is wrong with single records.

    Rows that declare no number of people have 0. With `keep`, rows also hold what is published of insensitive fields,
    and `labels` finds the labels of a box.
    """

    def __init__(self, rules: Rules | None, findings: Findings, keep: bool = False) -> None:
        self._rules, self._findings, self._keep = rules, findings, keep
        self._known = {name: _Labels(scale) for name, scale in rules.quasi.items()} if rules else {}
        self.labels: dict[int, Label] = {}
        self.policies: Counter[str] = Counter()
        self.losses = np.zeros(2)
        self._lost = {name: np.zeros(2) for name in self._known}
        self._records = 0
        sensitive = [(f"s{i}", "i8") for i in range(len(rules.sensitive) if rules else 0)]
        counts = [("row", "u4"), ("size", "u4"), ("people", "u4")]
        changed = [(f"t{i}", "i8") for i in range(len(rules.tokens) if rules else 0)]
        changed += [(f"d{i}", "i8") for i in range(len(rules.shifts) if rules else 0)]
        kept = [("plain", "i8")] if keep else []
        self.dtype = np.dtype([("group", "u8"), ("box", "i8"), *counts, ("time", "i8"), *sensitive, *changed, *kept])

    def rows(self, chunk: Chunk) -> Rows:
        """Convert a chunk into rows of numbers."""
        rows = np.zeros(len(chunk), dtype=self.dtype)
        rows["group"] = self._groups(chunk.marks)
        rows["row"], rows["time"] = chunk.row, 0 if chunk.times is None else chunk.times
        sums = np.array(chunk.sums.entries, dtype=np.float64)
        rows["size"], rows["people"] = sums[chunk.sums.index, 0], np.nan_to_num(sums[chunk.sums.index, 1])
        if self._rules is not None:
            self._generalizations(chunk.labels, sums[chunk.sums.index, 2], rows, self._rules)
            self._values(chunk.own, rows, self._rules)
        return rows

    def _groups(self, marks: Coded) -> Groups:
        """Return group ids as numbers; note malformed ones, and number them by a hash."""
        ids = [group for _, group in marks.entries]
        keys = _plain_ids(ids)
        if keys is None:
            keys = np.array([key_of(group) for group in ids], dtype=np.uint64)
            wrong = [key for key, group in zip(keys.tolist(), ids, strict=True) if f"{key:016x}" != group]
            self._findings.note("envelope", dict.fromkeys(wrong))
        tags = [tag for tag, _ in marks.entries]
        used = np.bincount(marks.index, minlength=len(tags)).tolist()
        for tag, number in zip(tags, used, strict=True):
            if tag in self.policies or len(self.policies) < 1000:
                self.policies[tag] += number
        if self._rules is not None:
            named = {tag: tag.rpartition("@")[0] == self._rules.name for tag in set(tags)}
            if not all(named.values()):
                self._findings.note("policy", np.unique(keys[[not named[tag] for tag in tags]]))
        return np.asarray(keys[marks.index])

    def _generalizations(self, labels: Coded, declared: npt.NDArray[np.float64], rows: Rows, rules: Rules) -> None:
        """Check every different combination of labels and measure what it loses."""
        least, most = np.zeros(len(labels.entries)), np.zeros(len(labels.entries))
        times = np.bincount(labels.index, minlength=len(labels.entries))
        self._records += len(labels.index)
        for (name, weight), column in zip(rules.weights.items(), zip(*labels.entries, strict=True), strict=True):
            known = self._known[name]
            known.make_room()
            number = np.fromiter(map(known.__getitem__, column), np.int64, len(column))
            bounds = np.array([known.least, known.most])[:, number]
            least += weight * bounds[0]
            most += weight * bounds[1]
            self._lost[name] += bounds @ times
            for wrong, code in known.faults.items():
                entries = np.flatnonzero(number == wrong)
                self._findings.note(code, np.unique(rows["group"][np.isin(labels.index, entries)]), column=name)
        boxes = np.array(list(map(hash, labels.entries)), dtype=np.int64)
        rows["box"] = boxes[labels.index]
        if self._keep:
            self.labels.update(zip(boxes.tolist(), labels.entries, strict=True))
        least, most = least[labels.index], most[labels.index]
        right = (declared >= least - _ROUNDED) & (declared <= most + _ROUNDED)
        self._findings.note("loss", np.unique(rows["group"][~right]))
        self.losses += declared[right].sum(), right.sum()

    def loss_per_attribute(self) -> dict[str, float]:
        """Return the average loss of each attribute whose labels determine it exactly."""
        found = {name: lost / self._records for name, lost in self._lost.items() if self._records}
        return {name: round(float(low), 6) for name, (low, high) in found.items() if high - low < _EXACT}

    def _values(self, own: Coded, rows: Rows, rules: Rules) -> None:
        """Store sensitive values as codes, and the insensitive ones as one hash."""
        columns = list(zip(*own.entries, strict=True))
        for i, (secret, values) in enumerate(zip(rules.sensitive.values(), columns, strict=False)):
            codes = np.array(secret.codes_of(values), dtype=np.int64)[own.index]
            rows[f"s{i}"] = codes
            self._findings.note("unknown-value", np.unique(rows["group"][codes == UNKNOWN_CODE]), column=secret.name)
        named = dict(zip((*rules.sensitive, *rules.plain), columns, strict=True)) if columns else {}
        self._changes(named, own, rows, rules)
        told = [named[name] for name in rules.plain if rules.told(name)] if named else []
        if self._keep and told:
            plain = zip(*told, strict=True)
            rows["plain"] = np.array([hash(tuple(map(text, values))) for values in plain], dtype=np.int64)[own.index]

    def _changes(self, named: dict[str, tuple[Any, ...]], own: Coded, rows: Rows, rules: Rules) -> None:
        """Check the form of changed fields; store tokens as hashes, 0 for none, and shifted dates as times."""
        for name, check in rules.changes.items() if named else ():
            wrong = np.array([not check.fits(value) for value in named[name]], dtype=np.bool_)
            self._findings.note("field-form", np.unique(rows["group"][wrong[own.index]]), column=name)
        for i, name in enumerate(rules.tokens if named else ()):
            hashes = [0 if value in (None, "") else token_code(value) for value in named[name]]
            rows[f"t{i}"] = np.array(hashes, dtype=np.int64)[own.index]
        for i, (name, shift) in enumerate(rules.shifts.items() if named else ()):
            times = [shift.milliseconds(value) for value in named[name]]
            rows[f"d{i}"] = np.array(times, dtype=np.int64)[own.index]


def token_code(value: Any) -> int:
    """Return a number for a token, equal for equal texts, never 0."""
    return hash(("token", text(value))) or 1


def _plain_ids(ids: list[str]) -> Groups | None:
    """Return the numbers of ids if all of them are 16 hexadecimal digits, else None."""
    joined = "".join(ids)
    if any(len(group) != 16 for group in ids):
        return None
    try:
        raw = bytes.fromhex(joined)
    except ValueError:
        return None
    return np.frombuffer(raw, dtype=">u8").astype(np.uint64) if raw.hex() == joined else None
