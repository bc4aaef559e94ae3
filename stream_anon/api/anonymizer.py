"""The stream anonymizer for Python programs: records in, groups out, time as an argument; no input, no output."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.decode import Rejection
from stream_anon.core.gate import Group
from stream_anon.core.schema import Schema
from stream_anon.errors import StreamAnonError
from stream_anon.formats.frames import payload_of, records_of
from stream_anon.local.pipeline import Pipeline
from stream_anon.policy import Policy

AT_ONCE = 10_000
"""Records that are decoded together: enough for columns to pay, few enough that groups leave in between."""


class StateError(StreamAnonError):
    """A saved state cannot be taken up: it is damaged, or of another policy or secret."""


class Anonymizer:
    """Anonymizes a stream of records under a policy.

    Feed it records as they arrive, call `tick` no later than `next_deadline`, and `finish` at the end of the input;
    each returns the groups that leave. A group iterates as records; `group.encoded()` gives them as JSON. Every record
    leaves in one group only, or not at all: `on_reject` is told of those that cannot be read, `counts` has the sums.

    `now` is in seconds on any clock that never runs backwards, `time.monotonic()` if it is not given.

    >>> import stream_anon
    >>> policy = stream_anon.Policy.model_validate({
    ...     "version": 1, "name": "visits", "subject": "who",
    ...     "attributes": {
    ...         "who": {"role": "identifier"},
    ...         "age": {"role": "quasi_identifier", "type": "integer",
    ...                 "hierarchy": {"kind": "interval", "range": [0, 120], "snap": [10]}},
    ...     },
    ...     "privacy": [{"model": "k_anonymity", "k": 2}],
    ...     "stream": {"max_delay": {"time": 5.0}},
    ... })
    >>> anonymizer = stream_anon.Anonymizer(policy)
    >>> anonymizer.feed([{"who": "Ann", "age": 31}, {"who": "Bo", "age": 64}], now=0.0)
    []
    >>> [group] = anonymizer.feed([{"who": "Cy", "age": 35}], now=4.9)
    >>> [record["age"] for record in group]
    [[30, 69], [30, 69], [30, 69]]
    """

    def __init__(self, policy: Policy, *, on_reject: Callable[[Rejection], None] | None = None) -> None:
        self._schema = Schema.of(policy)
        self._pipeline = Pipeline(self._schema, stable_subjects=self._schema.keys.stable)
        self._on_reject = on_reject
        self._number = 0

    def feed(self, records: Any, now: float | None = None) -> list[Group]:
        """Take records that arrived at `now`: mappings, JSON text or bytes, or a table of pandas, Polars or Arrow."""
        moment = _moment(now)
        waiting, groups = iter(records_of(records)), []
        while part := [payload_of(record) for record in islice(waiting, AT_ONCE)]:
            numbered = list(enumerate(part, start=self._number + 1))
            self._number += len(part)
            released, rejections = self._pipeline.feed(numbered, moment)
            groups += released
            for rejection in rejections if self._on_reject else ():
                self._on_reject(rejection)  # type: ignore[misc]
        return self._left(groups + self._pipeline.tick(moment), moment)

    def tick(self, now: float | None = None) -> list[Group]:
        """Let time pass without arrivals; return the groups that are due."""
        moment = _moment(now)
        return self._left(self._pipeline.tick(moment), moment)

    def finish(self, now: float | None = None) -> list[Group]:
        """Treat every waiting record as due: nothing follows."""
        moment = _moment(now)
        groups = [group for some in self._pipeline.finish(moment) for group in some]
        return self._left(groups, moment)

    @property
    def next_deadline(self) -> float | None:
        """When `tick` must be called at the latest, on the caller's clock; None if nothing waits for the clock."""
        return self._pipeline.deadline

    @property
    def counts(self) -> dict[str, Any]:
        """What came in, left, was suppressed or rejected so far, and what it lost; no value of a record."""
        return self._pipeline.tally.summary()

    def __len__(self) -> int:
        return len(self._pipeline.engine)

    def waiting(self) -> bytes:
        """Export the records that wait, for a checkpoint; it holds their values, so encrypt it before you store it.

        Taken up by `restore` under the same policy and secret, they go on waiting as if nothing had happened. The
        policy needs a secret: without one, people could not be told apart after a restart.
        """
        if not self._schema.keys.stable:
            raise StateError("only a policy with a secret can be checkpointed: secret: ${STREAM_ANON_SECRET}")
        rows = self._pipeline.engine.waiting()
        columns = {name: _packed(getattr(rows, name)) for name in Batch.__struct_fields__ if name != "values"}
        state = {
            "version": 1,
            "policy": self._schema.fingerprint,
            "number": self._number,
            "columns": columns,
            "values": rows.values.tolist(),
        }
        return msgspec.msgpack.encode(state)

    @classmethod
    def restore(
        cls, policy: Policy, state: bytes, *, on_reject: Callable[[Rejection], None] | None = None
    ) -> Anonymizer:
        """Take up the records that waited when `state` was exported; their ages go on where they were."""
        anonymizer = cls(policy, on_reject=on_reject)
        try:
            found = msgspec.msgpack.decode(state)
            right = found["version"] == 1 and found["policy"] == anonymizer._schema.fingerprint
        except (msgspec.DecodeError, KeyError, TypeError):
            raise StateError("the state is damaged: it is no export of waiting records") from None
        if not right:
            raise StateError("the state was exported under another policy: restore it with that one, and finish it")
        anonymizer._number = found["number"]
        anonymizer._take_up(found)
        return anonymizer

    def _take_up(self, found: dict[str, Any]) -> None:
        columns = {name: _unpacked(packed) for name, packed in found["columns"].items()}
        count = len(columns["subject"])
        values = np.empty((count, len(self._schema.published)), dtype=object)
        for row, cells in enumerate(found["values"]):
            values[row, :] = cells
        if count:
            self._pipeline.take_back(Batch(**columns, values=values))

    def _left(self, groups: list[Group], now: float) -> list[Group]:
        self._pipeline.published(groups, now)
        return groups


def _moment(now: float | None) -> float:
    return time.monotonic() if now is None else now


def _packed(column: Any) -> tuple[str, tuple[int, ...], bytes]:
    return column.dtype.str, column.shape, column.tobytes()


def _unpacked(packed: Any) -> Any:
    kind, shape, data = packed
    return np.frombuffer(data, dtype=kind).reshape(shape).copy()
