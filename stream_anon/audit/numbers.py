"""Chunks become rows of numbers, 40 bytes and 8 per sensitive attribute; labels, losses and ids are judged on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stream_anon.audit.chunks import Chunk
from stream_anon.audit.findings import Findings
from stream_anon.audit.lines import key_of
from stream_anon.audit.policy import Rules
from stream_anon.audit.scales import text
from stream_anon.audit.values import UNKNOWN_CODE

Rows = npt.NDArray[np.void]
Label = tuple[Any, ...]

_REMEMBERED = 100_000
"""Boxes kept to be recognised: records of a group come close together, so forgetting old ones costs little."""

_ROUNDED = 0.5e-4 + 1e-7
"""The loss is published with four decimals."""


class Boxes(dict[Label, int]):
    """Every combination of labels that was met, judged once: its number, its hash and what it can lose."""

    def __init__(self, rules: Rules, findings: Findings) -> None:
        super().__init__()
        self._scales, self._weights, self._findings = list(rules.quasi.items()), rules.weights, findings
        self._labels: list[dict[Any, Any]] = [{} for _ in self._scales]
        self.faults: dict[int, list[tuple[str, str]]] = {}
        self.hashes: list[int] = []
        self.least: list[float] = []
        self.most: list[float] = []

    def __missing__(self, labels: Label) -> int:
        number = self[labels] = len(self.hashes)
        least = most = 0.0
        for (name, scale), label, known in zip(self._scales, labels, self._labels, strict=True):
            reading = known.get(label)
            if reading is None or type(label) is not str:  # 1, 1.0 and True are one key, and not one label
                if len(known) > _REMEMBERED:
                    known.clear()
                reading = known[label] = scale.read(label)
            if isinstance(reading, str):
                self.faults.setdefault(number, []).append((reading, name))
                most += self._weights[name]
                continue
            least += self._weights[name] * reading.least
            most += self._weights[name] * reading.most
        self.hashes.append(hash(labels))
        self.least.append(least)
        self.most.append(most)
        return number

    def forget(self) -> None:
        """Start anew; hashes do not depend on what was met before."""
        self.clear()
        self.faults.clear()
        for values in (self.hashes, self.least, self.most):
            values.clear()


class Numbers:
    """Turns chunks into rows and notes what is wrong with single records."""

    def __init__(self, rules: Rules | None, findings: Findings, keep: bool = False) -> None:
        self._rules, self._findings = rules, findings
        self._boxes = Boxes(rules, findings) if rules else None
        self._sensitive = list(rules.sensitive.values()) if rules else []
        self.kept: dict[int, Label] | None = {} if keep else None
        self.policies: Counter[str] = Counter()
        self.losses = np.zeros(2)
        columns: list[Any] = [
            ("group", "u8"), ("box", "i8"), ("row", "u4"), ("size", "u4"), ("people", "u4"), ("time", "i8"),
            *((f"s{i}", "i8") for i in range(len(self._sensitive))), *([("plain", "i8")] if keep else []),
        ]  # fmt: skip
        self.dtype = np.dtype(columns)

    def rows(self, chunk: Chunk) -> Rows:
        """The rows of a chunk."""
        rows = np.zeros(len(chunk), dtype=self.dtype)
        facts = chunk.facts
        rows["group"] = group = self._groups(facts["group"])
        rows["row"], rows["size"], rows["people"] = facts["row"], facts["size"], facts["subjects"]
        rows["time"] = 0 if chunk.times is None else chunk.times
        self._tags(facts["policy"], group)
        if self._rules is None or self._boxes is None:
            return rows
        self._generalizations(chunk, rows, self._rules, self._boxes)
        for i, column in enumerate(self._sensitive):
            values = chunk.columns[column.name]
            codes = np.fromiter(map(column.codes.__getitem__, values), np.int64, len(values))
            rows[f"s{i}"] = codes
            self._findings.note("unknown-value", np.unique(group[codes == UNKNOWN_CODE]), column=column.name)
        if self.kept is not None:
            plain = [chunk.columns[name] for name in self._rules.plain]
            rows["plain"] = [hash(tuple(map(text, values))) for values in zip(*plain, strict=True)] if plain else 0
        return rows

    def _groups(self, ids: Sequence[str]) -> npt.NDArray[np.uint64]:
        """Ids as the numbers they are; others are told, and numbered by a hash."""
        joined = "".join(ids)
        if len(joined) == 16 * len(ids) and set(map(len, ids)) <= {16}:
            try:
                raw = bytes.fromhex(joined)
                if raw.hex() == joined:
                    return np.frombuffer(raw, dtype=">u8").astype(np.uint64)
            except ValueError:
                pass
        keys = [key_of(group) for group in ids]
        wrong = [key for key, group in zip(keys, ids, strict=True) if f"{key:016x}" != group]
        self._findings.note("envelope", dict.fromkeys(wrong))
        return np.array(keys, dtype=np.uint64)

    def _tags(self, tags: Sequence[str], group: npt.NDArray[np.uint64]) -> None:
        counted = Counter(tags)
        for tag, number in counted.items():
            if len(self.policies) < 1000 or tag in self.policies:
                self.policies[tag] += number
        if self._rules is not None:
            foreign = {tag for tag in counted if tag.rpartition("@")[0] != self._rules.name}
            if foreign:
                wrong = np.array([tag in foreign for tag in tags])
                self._findings.note("policy", np.unique(group[wrong]))

    def _generalizations(self, chunk: Chunk, rows: Rows, rules: Rules, boxes: Boxes) -> None:
        if len(boxes) > _REMEMBERED:
            boxes.forget()
        labels = list(zip(*(chunk.columns[name] for name in rules.quasi), strict=True))
        number = np.fromiter(map(boxes.__getitem__, labels), np.int64, len(rows))
        rows["box"] = np.array(boxes.hashes, dtype=np.int64)[number]
        if self.kept is not None:
            self.kept.update(zip(rows["box"].tolist(), labels, strict=True))
        declared = np.array(chunk.facts["loss"], dtype=np.float64)
        least, most = np.array(boxes.least)[number], np.array(boxes.most)[number]
        wrong = ~((declared >= least - _ROUNDED) & (declared <= most + _ROUNDED))
        self._findings.note("loss", np.unique(rows["group"][wrong]))
        self.losses += declared[~wrong].sum(), (~wrong).sum()
        if boxes.faults:
            for box in np.intersect1d(number, np.array(list(boxes.faults))).tolist():
                groups = np.unique(rows["group"][number == box])
                for code, column in boxes.faults[box]:
                    self._findings.note(code, groups, column=column)
