"""Anonymize a whole table from Python: a file, a frame or plain records in, the same kind out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from stream_anon.core.decode import Rejection
from stream_anon.core.gate import Group
from stream_anon.core.loss.classes import ClassMeasures
from stream_anon.core.schema import Schema
from stream_anon.formats.frames import frame_like, rows_of
from stream_anon.formats.tables import Part, TableError, read_parts
from stream_anon.formats.writers import new_file, writer_for
from stream_anon.local.anonymize import Anonymization
from stream_anon.observe.limits import Limits
from stream_anon.policy import Policy


@dataclass(frozen=True)
class AnonymizedTable:
    """What came of anonymizing a table.

    `table` is of the kind that was given: a frame for a frame, a list of records for records or a file. `loss` is the
    share of information lost, `losses` tells it per quasi-identifier; `measures` are those of the papers on classes.
    `rejections` name the rows that could not be read, by line or place, with a code and never a value.
    """

    table: Any = field(repr=False)
    groups: list[Group] = field(repr=False)
    rows: int
    published: int
    suppressed: int
    rejected: Counter[str]
    rejections: list[Rejection] = field(repr=False)
    loss: float
    losses: dict[str, float]
    measures: ClassMeasures

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the groups to a CSV, JSON lines or Parquet file, whole or not at all."""
        target = Path(path)
        if target.exists() and not overwrite:
            raise TableError(f"{target}: already exists; name another file, or pass overwrite=True")
        with new_file(target, overwrite) as file:
            writer = writer_for(target, file)
            writer.write(self.groups)
            writer.close()


def anonymize(
    table: Any,
    policy: Policy,
    *,
    algorithm: str = "sweep",
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    part: int = 0,
    encoding: str | None = None,
    max_rejected: float | None = None,
    max_suppressed: float | None = None,
) -> AnonymizedTable:
    """Anonymize a whole table by a batch algorithm.

    `table` is a path (.csv, .tsv, .jsonl, .json, .parquet), a pandas, Polars or Arrow table, or an iterable of records.
    Raises `PolicyError` for a policy that cannot be used, `Unsupported` for one that the algorithm cannot honour,
    `TooMuchLost` where more is rejected or suppressed than allowed. Where a larger table is anonymized in parts, `part`
    is the number of this one: groups of different parts then have different ids. `encoding` is that of a file of text
    that is not UTF-8 and has no byte order mark.

    >>> import stream_anon
    >>> policy = stream_anon.Policy.model_validate({
    ...     "version": 1, "name": "ages",
    ...     "attributes": {
    ...         "age": {"role": "quasi_identifier", "type": "integer",
    ...                 "hierarchy": {"kind": "interval", "range": [0, 120], "snap": [10]}},
    ...         "illness": {"role": "sensitive"},
    ...     },
    ...     "privacy": [{"model": "k_anonymity", "k": 2}],
    ... })
    >>> rows = [{"age": 31, "illness": "flu"}, {"age": 38, "illness": "ulcer"}, {"age": 35, "illness": "flu"}]
    >>> result = stream_anon.anonymize(rows, policy)
    >>> result.published, result.table[0]["age"]
    (3, [30, 39])
    """
    schema = Schema.of(policy)
    limits = Limits.of(policy, max_rejected, max_suppressed)
    run = Anonymization(schema, algorithm, options, seed, limits)
    rejections: list[Rejection] = []
    run.read(_parts(table, part, encoding), rejections.extend, _ignore)
    run.divide(_ignore)
    run.tally.publish(run.groups, 0.0)
    return AnonymizedTable(
        table=frame_like(table, run.groups),
        groups=run.groups,
        rows=run.tally.consumed,
        published=run.tally.published,
        suppressed=run.tally.suppressed,
        rejected=run.tally.rejected,
        rejections=rejections,
        loss=run.tally.loss,
        losses=run.tally.losses,
        measures=run.measures(),
    )


def _parts(table: Any, number: int, encoding: str | None) -> Iterator[Part]:
    named = isinstance(table, str | os.PathLike)
    for part in read_parts(Path(table), encoding=encoding) if named else _parts_of(table):
        places = np.arange(part.first, part.first + len(part))
        yield replace(part, refs=np.stack([np.full(len(part), number), places], axis=1))


def _parts_of(table: Any) -> Iterator[Part]:
    first = 1
    for payloads in rows_of(table):
        yield Part(first, np.arange(first, first + len(payloads)), payloads, 0.0)
        first += len(payloads)


def _ignore(share: float) -> None:
    """Default progress callback; does nothing."""
