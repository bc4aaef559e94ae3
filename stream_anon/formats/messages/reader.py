"""Read messages by the schema that each one names; schemas are compiled once and kept.

`auto` takes every message for what it is: framed, or plain JSON. A message that names a schema the registry does not
have, or one that cannot be used, is rejected by code. While the registry is away nothing is rejected: whoever asks for
an unknown schema gets `RegistryAwayError`, and asks again.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from stream_anon.core.decode import Columns, Decoder, Payload, Reject, Rejection
from stream_anon.formats.messages.framing import HEAD, MAGIC, schema_id_of
from stream_anon.formats.messages.registry import Registry, RegistryAwayError, RegistryError, Schema
from stream_anon.formats.messages.values import checked

WAIT = 0.25
"""Seconds to wait for schemas before a caller with other duties goes on and asks again; None for one without."""

_AT_ONCE = 20  # unknown schemas fetched in one call
_MISSED_FOR, _MOST_MISSED = 60.0, 100_000  # seconds for which a missing schema is taken for missing, and how many are


class UnusableSchemaError(Exception):
    """Messages of a schema cannot be read; the text says why and holds nothing of a message."""


class Compiled(Protocol):
    """A schema made ready to read the declared fields of its messages."""

    def read(self, bodies: Sequence[bytes]) -> Columns:
        """Read the bodies of messages: what stands behind the number of the schema."""


Compile = Callable[[Schema, Mapping[str, str]], Compiled]
"""Makes a schema ready for fields of these types; raises `UnusableSchemaError`."""


class MessageReader:
    """A reader of the declared fields of messages, of any schemas that the registry has.

    `compilers` say by kind of schema how one is made ready. `plain`: messages without framing are read as JSON. `wait`
    is how long a call waits for schemas, None for as long as it takes.
    """

    def __init__(
        self,
        types: Mapping[str, str],
        registry: Registry,
        compilers: Mapping[str, Compile],
        plain: bool,
        wait: float | None = WAIT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._types, self._registry, self._compilers = types, registry, compilers
        self._json = JsonMessages(types)
        self._plain, self._wait, self._clock = plain, wait, clock
        self._schemas: dict[bytes, Compiled | Reject] = {}
        self._missed: dict[bytes, float] = {}  # when the registry had none of that number
        self._background = ThreadPoolExecutor(1, thread_name_prefix="schemas")
        self._fetching: Future[dict[bytes, Compiled | Reject]] | None = None

    def learn(self, payloads: Sequence[Payload]) -> None:
        """Fetch the schemas that messages name and that are not known yet, or raise `RegistryAwayError`.

        Only some at a time, and without waiting for long: neither who sends made-up numbers nor a registry that is slow
        keeps a worker from its other duties.
        """
        self._forget()
        self._fetch_unknown(payloads)

    def _fetch_unknown(self, payloads: Sequence[Payload]) -> None:
        unknown = {p[:HEAD] for p in payloads if type(p) is bytes and p.startswith(MAGIC)} - self._schemas.keys()
        if not unknown:
            return
        if self._fetching is None:
            self._fetching = self._background.submit(self._fetch_all, sorted(unknown)[:_AT_ONCE])
        try:
            found = self._fetching.result(self._wait)
        except TimeoutError:
            raise RegistryAwayError("schemas are being fetched") from None
        except BaseException:
            self._fetching = None
            raise
        self._fetching = None
        self._schemas |= found
        self._missed |= {head: self._clock() for head, schema in found.items() if schema is Reject.UNKNOWN_SCHEMA}
        if unknown - found.keys():
            raise RegistryAwayError("messages name more unknown schemas than are fetched at once")

    def _fetch_all(self, heads: Sequence[bytes]) -> dict[bytes, Compiled | Reject]:
        return {head: self._fetch(head) for head in heads}

    def _forget(self) -> None:
        """Ask again for what the registry did not have a while ago, and do not remember too much of it."""
        if self._missed and (
            len(self._missed) > _MOST_MISSED or self._clock() - next(iter(self._missed.values())) > _MISSED_FOR
        ):
            for head in self._missed:
                del self._schemas[head]
            self._missed.clear()

    def columns(self, payloads: Sequence[Payload]) -> Columns:
        """Read the declared fields of messages."""
        self._fetch_unknown(payloads)
        refused: dict[int, Rejection] = {}
        by_schema: dict[bytes, list[int]] = defaultdict(list)
        for i, payload in enumerate(payloads):
            if type(payload) is not bytes:
                refused[i] = Rejection(i, payload if isinstance(payload, Reject) else Reject.TOMBSTONE)
            elif payload.startswith(MAGIC):
                by_schema[payload[:HEAD]].append(i)
            elif self._plain:
                by_schema[b""].append(i)
            else:
                refused[i] = Rejection(i, Reject.NOT_FRAMED)
        parts: list[tuple[list[int], Columns]] = []
        for head, places in by_schema.items():
            schema = self._schemas[head] if head else self._json
            if isinstance(schema, Reject):
                refused |= {i: Rejection(i, schema) for i in places}
                continue
            bodies = [payload[len(head) :] for i in places if type(payload := payloads[i]) is bytes]
            parts.append((places, schema.read(bodies)))
        return _joined(parts, refused, len(payloads), list(self._types))

    def _fetch(self, head: bytes) -> Compiled | Reject:
        if len(head) < HEAD:
            return Reject.UNKNOWN_SCHEMA
        try:
            schema = self._registry.schema(schema_id_of(head))
            if schema is None:
                return Reject.UNKNOWN_SCHEMA
            if schema.kind not in self._compilers:
                return Reject.UNUSABLE_SCHEMA
            return self._compilers[schema.kind](schema, self._types)
        except (UnusableSchemaError, RegistryError, RecursionError):
            return Reject.UNUSABLE_SCHEMA


class JsonMessages:
    """Messages whose body is JSON: plain ones, and those of a JSON schema."""

    def __init__(self, types: Mapping[str, str]) -> None:
        self._json = Decoder(types)

    def read(self, bodies: Sequence[bytes]) -> Columns:
        """Read the bodies of messages."""
        return self._json.columns(bodies)


def _joined(
    parts: Sequence[tuple[list[int], Columns]], refused: dict[int, Rejection], count: int, names: Sequence[str]
) -> Columns:
    """Put the columns of messages of different schemas together, in the order of the messages."""
    if len(parts) == 1 and len(parts[0][0]) == count:
        return parts[0][1]
    values: dict[str, list[Any]] = {name: [] for name in names}
    kept: list[int] = []
    for places, columns in parts:
        kept += [places[i] for i in columns.kept.tolist()]
        refused |= {places[i]: Rejection(places[i], r.code, r.column) for i, r in columns.refused.items()}
        for name in names:
            values[name] += columns.values[name]
    order = np.argsort(np.array(kept, dtype=np.int64), kind="stable")
    in_order = {name: [column[i] for i in order.tolist()] for name, column in values.items()}
    return Columns(np.array(kept, dtype=np.int64)[order], in_order, refused)


def columns_of(rows: Sequence[Any], types: Mapping[str, str], getters: Mapping[str, Callable[[Any], Any]]) -> Columns:
    """Return the declared fields of decoded messages; a row that is a code was not decoded.

    A value that its field may not have rejects its message.
    """
    refused = {i: Rejection(i, row) for i, row in enumerate(rows) if isinstance(row, Reject)}
    kept = np.delete(np.arange(len(rows)), list(refused)) if refused else np.arange(len(rows))
    good = [rows[i] for i in kept.tolist()] if refused else rows
    values: dict[str, list[Any]] = {}
    bad: dict[int, str] = {}
    for name, kind in types.items():
        values[name], wrong = checked(list(map(getters[name], good)), kind)
        for i in wrong:
            bad.setdefault(i, name)
    if bad:
        refused |= {int(kept[i]): Rejection(int(kept[i]), Reject.WRONG_TYPE, name) for i, name in bad.items()}
        values = {name: [v for i, v in enumerate(column) if i not in bad] for name, column in values.items()}
        kept = np.delete(kept, list(bad))
    return Columns(kept, values, refused)
