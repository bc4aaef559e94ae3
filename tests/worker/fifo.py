"""The smallest core that keeps the loop's contract: k rows in order of arrival, deterministic bytes, rejections."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from stream_anon.stream.outcome import always
from stream_anon.worker.core import Core


@dataclass(frozen=True, eq=False)
class Rows:
    ref: np.ndarray
    arrived: np.ndarray
    payload: np.ndarray

    def __len__(self) -> int:
        return len(self.arrived)

    def take(self, index: object) -> Rows:
        return Rows(*(getattr(self, f.name)[index] for f in fields(self)))


@dataclass(frozen=True)
class Group:
    rows: Rows
    salt: bytes = b""
    reason: str = "ready"
    loss: float = 0.0
    losses: tuple[float, ...] = ()
    raised: dict[str, list[int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def members(self) -> np.ndarray:
        return np.array(sorted(self.rows.ref.tolist()))

    @property
    def arrived(self) -> np.ndarray:
        return self.rows.arrived

    @property
    def id(self) -> str:
        return hashlib.sha256(self.salt + json.dumps(sorted(self.rows.ref.tolist())).encode()).hexdigest()[:12]

    def encoded(self) -> list[bytes]:
        order = np.lexsort((self.rows.ref[:, 1], self.rows.ref[:, 0]))
        payload = self.rows.payload[order].tolist()
        return [json.dumps({"v": v, "_anon": {"group": self.id, "row": i}}).encode() for i, v in enumerate(payload)]


@dataclass
class Outcome:
    groups: list[Group] = field(default_factory=list)
    suppressed: Rows | None = None
    rest: int = 0


@dataclass(frozen=True)
class Rejection:
    index: int
    code: str
    column: str | None


@dataclass(frozen=True)
class Encoded:
    batch: Rows
    rejections: list[Rejection]


def encode(payloads: Sequence[bytes | None], ref: np.ndarray, arrived: np.ndarray) -> Encoded:
    good, bad = [], []
    for i, payload in enumerate(payloads):
        if payload is None:
            bad.append(Rejection(i, "tombstone", None))
        elif payload.startswith(b"bad"):
            bad.append(Rejection(i, "not_json", None))
        else:
            good.append(i)
    texts = np.array([payloads[i].decode() for i in good], dtype=object)  # type: ignore[union-attr]
    return Encoded(Rows(ref[good], arrived[good], texts), bad)


class Fifo:
    """Groups of k in order of arrival; rows older than `delay` are suppressed by `tick`.

    With `keep` that many rows stay behind, and groups are picked across all that wait: later offsets finish first.
    """

    def __init__(self, k: int, delay: float | None, salt: bytes, keep: int = 0) -> None:
        self.k, self.delay, self.salt, self.keep = k, delay, salt, keep
        self.rows: Rows | None = None

    def push(self, rows: Rows, now: float, *, more: Callable[[], bool] = always) -> Outcome:
        self._keep(rows)
        assert self.rows is not None
        out = Outcome()
        while len(self.rows) >= self.k + self.keep:
            chosen = np.zeros(len(self.rows), dtype=bool)
            chosen[: self.k] = True
            if self.keep:
                chosen = chosen[np.argsort((self.rows.ref[:, 1] * 7919 + self.rows.ref[:, 0] * 31) % 101)]
            out.groups.append(Group(self.rows.take(chosen), self.salt))
            self.rows = self.rows.take(~chosen)
        return out

    def _keep(self, rows: Rows) -> None:
        if self.rows is None:
            self.rows = rows
        else:
            pairs = ((getattr(self.rows, f.name), getattr(rows, f.name)) for f in fields(Rows))
            self.rows = Rows(*(np.concatenate(pair) for pair in pairs))

    def tick(self, now: float, *, more: Callable[[], bool] = always) -> Outcome:
        if self.rows is None or self.delay is None:
            return Outcome()
        late = now - self.rows.arrived >= self.delay
        out = Outcome(suppressed=self.rows.take(late))
        self.rows = self.rows.take(~late)
        return out

    def flush(self, *, more: Callable[[], bool] = always) -> Outcome:
        rows, self.rows = self.rows, None
        return Outcome(suppressed=rows)

    def __len__(self) -> int:
        return 0 if self.rows is None else len(self.rows)

    @property
    def open_clusters(self) -> int:
        return 0

    def next_deadline(self) -> float | None:
        if self.rows is None or self.delay is None or not len(self.rows):
            return None
        return float(self.rows.arrived.min()) + self.delay

    def remove(self, ref: np.ndarray) -> Rows | None:
        if self.rows is None:
            return None
        gone = set(map(tuple, ref.tolist()))
        out = np.array([tuple(r) in gone for r in self.rows.ref.tolist()], dtype=bool)
        taken, self.rows = self.rows.take(out), self.rows.take(~out)
        return taken


def fifo_core(k: int = 3, delay: float | None = None, salt: bytes = b"policy one", keep: int = 0) -> Core:
    return Core(
        encode,
        lambda: Fifo(k, delay, salt, keep),
        lambda rows: Group(rows, salt),
        lambda groups: [group.encoded() for group in groups],
        hashlib.sha256(salt).digest()[:8],
        b"the secret of the tests",
    )
