"""What executors do with batches of Arrow: place rows into parts, divide a part, and show or merge what came of it.

Between these steps rows and records travel as bytes, many to a row of Spark, which costs the JVM next to nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from stream_anon.batch.cut_tree import CutTree, scatter
from stream_anon.core.batch import Batch, identities
from stream_anon.core.encode import Encoded, Encoder
from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Ints
from stream_anon.core.schema import Schema
from stream_anon.errors import StreamAnonError
from stream_anon.formats.arrow.published import published_table, solid
from stream_anon.formats.arrow.rows import ArrowRows
from stream_anon.local.parts.divided import DividedPart, Way, divide_part
from stream_anon.local.parts.fragments import in_order
from stream_anon.local.parts.packed import packed, unpacked
from stream_anon.policy import Policy
from stream_anon.spark.own_order import in_own_order

PLACED = "part bigint, rejected string, rows binary"
"""Some rows of a part, and how many could not be read for which reason: these are counted in the first part."""

METRICS = (
    "part bigint, rows bigint, rejected bigint, published bigint, suppressed bigint, groups bigint, "
    "smallest bigint, loss double"
)
FIGURES = "figures string"
RECORDS = "bucket bigint, ids binary, sizes binary, records binary"
DIVIDED = f"{METRICS}, {FIGURES}, {RECORDS}"
"""A row with the metrics of a part, and a row for each range of group ids with its records, ids and sizes of groups."""

AT_ONCE = 100_000
"""Rows placed at once: fewer travel in smaller pieces."""


@dataclass(frozen=True)
class Job:
    """What executors are sent: the policy, how to divide, the tree, the columns of records, and facts of the whole.

    `buckets` is the number of ranges of group ids, a power of two.
    """

    policy: Policy
    way: Way
    tree: CutTree
    shape: Any
    buckets: int = 2
    facts: tuple[Any, ...] | None = None


def encoded(schema: Schema, table: Any, stable: bool = True) -> Encoded:
    """Encode the rows of an Arrow table in their order; a row's number is its place."""
    batches = table.combine_chunks().to_batches()
    encoder, n = Encoder(schema, stable_subjects=stable), table.num_rows
    rows: Any = ArrowRows(batches[0]) if batches else []
    ref = np.stack([np.zeros(n, dtype=np.int64), np.arange(n)], axis=1)
    return encoder.encode(rows, ref, np.zeros(n))


def placing(job: Job) -> Callable[[Any], Any]:
    """Return what puts rows into their parts."""

    def place(batches: Any) -> Any:
        held, count = [], 0
        for batch in batches:
            held.append(batch)
            count += batch.num_rows
            if count >= AT_ONCE:
                yield _placed(job, held)
                held, count = [], 0
        if held:
            yield _placed(job, held)

    return place


def _placed(job: Job, batches: list[Any]) -> Any:
    import pyarrow as pa

    with told_without_values():
        found = encoded(schema_of(job), pa.Table.from_batches(batches))
        parts = [(part, None, packed(rows)) for part, rows in scatter(found.batch, job.tree)]
    if found.rejections:
        codes = Counter(str(rejection.code) for rejection in found.rejections)
        parts.append((0, msgspec.json.encode(codes).decode(), None))  # type: ignore[arg-type]
    columns = zip(*parts, strict=True) if parts else ([], [], [])
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, _types(pa, PLACED), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, _names(PLACED))


def dividing(job: Job) -> Callable[[Any, Any], Any]:
    """Return what divides a part: its rows are put into an order of their own first."""

    def divide(key: tuple[Any, ...], table: Any) -> Any:
        schema, part = schema_of(job), key[0].as_py()
        codes: Counter[str] = Counter()
        for text in table["rejected"].drop_null().to_pylist():
            codes.update(msgspec.json.decode(text))
        with told_without_values():
            chunks = [unpacked(data) for data in table["rows"].drop_null().to_pylist()]
            rows = _numbered(in_own_order(Batch.concat(chunks), schema), schema, part) if chunks else None
            del chunks
            found = divide_part(rows, schema, job.way, given_up=True)
            return _divided(job, part, codes, found)

    return divide


def _numbered(rows: Batch, schema: Schema, part: int) -> Batch:
    """Give rows the numbers of their places, from which the ids of groups are made."""
    n = len(rows)
    ref = np.stack([np.full(n, part, dtype=np.int64), np.arange(n)], axis=1)
    return replace(rows, ref=ref, subject=rows.subject if schema.subject else identities(ref))


def _divided(job: Job, part: int, codes: Counter[str], found: DividedPart) -> Any:
    import pyarrow as pa

    figures = found.figures | {"part": part, "rejected": codes}
    left = figures["published"] + figures["suppressed"]
    figures["rows"] = left + codes.total()
    metrics = {
        "part": part,
        "rows": figures["rows"],
        "rejected": codes.total(),
        "published": figures["published"],
        "suppressed": figures["suppressed"],
        "groups": len(found.groups),
        "smallest": figures["smallest"],
        "loss": (figures["loss"] + figures["suppressed"]) / max(left, 1),
    }
    rows: list[dict[str, Any]] = [metrics | {"figures": msgspec.json.encode(figures).decode()}]
    rows += _records(job, found.groups) if found.groups else []
    schema = pa.schema(list(zip(_names(DIVIDED), _types(pa, DIVIDED), strict=True)))
    return pa.Table.from_batches([pa.RecordBatch.from_pylist([row], schema) for row in rows])


def _records(job: Job, groups: Sequence[Group]) -> Iterator[dict[str, Any]]:
    """Yield records, group by group, with a row of Spark for each range of ids."""
    import pyarrow as pa

    table = published_table(groups, solid(job.shape, groups)).cast(job.shape)
    ids = np.frombuffer(bytes.fromhex("".join([group.id for group in groups])), ">u8").astype(np.uint64)
    sizes = np.fromiter(map(len, groups), np.int64, len(groups))
    bucket = (ids >> np.uint64(65 - job.buckets.bit_length())).astype(np.int64)
    begins, options = np.append(0, np.cumsum(sizes)), pa.ipc.IpcWriteOptions(compression="lz4")
    for number in np.unique(bucket).tolist():
        first, last = np.searchsorted(bucket, [number, number + 1]).tolist()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table.slice(begins[first], begins[last] - begins[first]))
        own = {"ids": ids[first:last].tobytes(), "sizes": sizes[first:last].tobytes()}
        yield {"bucket": number, **own, "records": sink.getvalue().to_pybytes()}


def show(batches: Any) -> Any:
    """Unpack records, in the order of their bytes."""
    for batch in batches:
        for records in batch["records"].to_pylist():
            yield from _unpacked(records).to_batches()


def merge(batches: Any) -> Any:
    """Unpack records of one range of ids after another, groups of all parts in the order of their ids."""
    held: list[dict[str, Any]] = []
    for batch in batches:
        for place in range(batch.num_rows):
            [row] = batch.slice(place, 1).to_pylist()
            if held and held[0]["bucket"] != row["bucket"]:
                yield from _merged(held)
                held = []
            held.append(row)
    if held:
        yield from _merged(held)


def _merged(rows: Sequence[Mapping[str, Any]]) -> Any:
    import pyarrow as pa

    table = pa.concat_tables([_unpacked(row["records"]) for row in rows])
    ids = np.frombuffer(b"".join([row["ids"] for row in rows]), np.uint64)
    sizes = np.frombuffer(b"".join([row["sizes"] for row in rows]), np.int64)
    return table.take(pa.array(in_order(ids, sizes))).to_batches()


def _unpacked(records: bytes) -> Any:
    import pyarrow as pa

    return pa.ipc.open_stream(records).read_all()


@contextmanager
def told_without_values() -> Iterator[None]:
    """Name the kind of a failure only: its text could hold a value, and Spark writes it into logs and to the driver."""
    try:
        yield
    except StreamAnonError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise StreamAnonError(f"a part cannot be anonymized ({kind}): columns cast to string may help") from None


def counting_values(job: Job) -> Callable[[Any], Any]:
    """Return what counts the different combinations of sensitive values and wishes."""
    names = names_of_facts(schema_of(job))

    def count(batches: Any) -> Any:
        import pyarrow as pa

        schema = schema_of(job)
        for batch in batches:
            with told_without_values():
                rows = encoded(schema, pa.Table.from_batches([batch])).batch
            found, times = np.unique(np.hstack([rows.sensitive, rows.psf]), axis=0, return_counts=True)
            columns = [pa.array(found[:, i]) for i in range(len(names))]
            yield pa.RecordBatch.from_arrays([*columns, pa.array(times)], [*names, "times"])

    return count


def names_of_facts(schema: Schema) -> list[str]:
    """Return the columns in which combinations are counted."""
    return [f"f{i}" for i in range(2 * len(schema.sensitive))]


def schema_of(job: Job) -> Schema:
    """Return the schema of a job, built once per process."""
    return _cached(_Key(job))


class _Key:
    """A job as the key of a cache: jobs of one process are one if all that decides about groups is."""

    def __init__(self, job: Job) -> None:
        self.job = job
        secret = job.policy.secret
        self._told = (job.policy.model_dump_json(), secret.get_secret_value() if secret else "", job.facts)

    def __hash__(self) -> int:
        return hash(self._told)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._told == other._told


@lru_cache(maxsize=4)
def _cached(key: _Key) -> Schema:
    """Build the schema, and show its models the whole."""
    schema = Schema.of(key.job.policy)
    for row in key.job.facts or ():
        *codes, times = row
        width = len(codes) // 2
        schema.requirements.observe(_alike(np.array(codes[:width]), np.array(codes[width:]), times, len(schema.quasi)))
    return schema


def _alike(sensitive: Ints, psf: Ints, times: int, width: int) -> Batch:
    """Return rows of which only sensitive values and wishes are known."""
    ones = np.ones((times, 1), dtype=np.int64)
    numbers = np.arange(times)
    return Batch(
        qi=np.zeros((times, width), dtype=np.int64),
        sensitive=ones * sensitive,
        guard=ones * np.full(len(sensitive), -1),
        psf=ones * psf,
        subject=numbers,
        arrived=np.zeros(times),
        ref=np.stack([numbers, numbers], axis=1),
        serial=numbers,
        values=np.empty((times, 0), dtype=object),
    )


def _names(columns: str) -> list[str]:
    return [column.split()[0] for column in columns.split(", ")]


def _types(pa: Any, columns: str) -> list[Any]:
    kinds = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string(), "binary": pa.binary()}
    return [kinds[column.split()[1]] for column in columns.split(", ")]
