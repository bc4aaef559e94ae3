"""Anonymize a DataFrame part by part: the driver grows a tree on a sample, executors anonymize parts in Arrow.

Spark computes a part again when a task dies, or when a frame is used twice. That must not publish a row in another
group: a part's rows are put into an order of their own first, so that its groups are a function of its rows, the policy
and the secret, wherever and however often they are computed. Rows must have come from a frame that gives the same rows
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from stream_anon.batch import build, partition
from stream_anon.batch.cut_tree import LEAST, MOST, SAMPLE, CutTree, grow, wanted
from stream_anon.batch.support import check
from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoded, Encoder
from stream_anon.core.schema import Schema
from stream_anon.errors import StreamAnonError, Unsupported
from stream_anon.formats.arrow.published import published_table, solid
from stream_anon.formats.arrow.rows import ArrowRows
from stream_anon.policy import Policy
from stream_anon.spark.shape import empty_table, published_schema

PART, PLACE = "__part", "__place"
"""Columns added to the rows on their way to their parts."""


@dataclass(frozen=True)
class SparkResult:
    """What came of a DataFrame: `table` are the published records, `metrics` one row of counts for each part.

    Both are lazy. `metrics` is computed from the rows again; each part then has the groups it had in `table`.
    """

    table: Any
    metrics: Any
    parts: int


@dataclass(frozen=True)
class _Job:
    """What executors are sent: the policy, the algorithm, the tree, and the facts of the whole."""

    policy: Policy
    algorithm: str
    options: Mapping[str, Any] | None
    seed: int
    tree: CutTree
    facts: tuple[Any, ...] | None = None


def anonymize(
    frame: Any,
    policy: Policy,
    algorithm: str = "sweep",
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    parts: int | None = None,
    least: int = LEAST,
) -> SparkResult:
    """Anonymize a Spark DataFrame by a batch algorithm.

    Rows that cannot be read, and those that find no place in their part, are counted in `metrics` and not published.
    The policy needs a secret: a part that is computed again must get the same groups. Raises `PolicyError` and
    `Unsupported` before any work. `least` is the number of rows below which no part is cut off.
    """
    schema = Schema.of(policy)
    build(algorithm, options, seed)
    check(algorithm, schema)
    if not schema.keys.stable:
        raise Unsupported("Spark may compute a part twice, and only a policy with a secret gives the same groups again")
    if not schema.template.flat:
        raise Unsupported("fields inside others cannot be published through Spark: select them into columns first")
    frame = frame.select(*(_declared(schema, frame.columns)))
    count = frame.count()
    tree = _tree(frame, schema, count, parts, least)
    job = _Job(policy, algorithm, options, seed, tree)
    if any(getattr(settings, "learns", False) for settings in policy.privacy):
        job = _Job(policy, algorithm, options, seed, tree, _facts(frame, job))
    placed = frame.mapInArrow(_placing(job), _placed_schema(frame)).groupBy(PART)
    shape = published_schema(schema, frame.schema)
    return SparkResult(
        placed.applyInArrow(_publishing(job), shape),
        placed.applyInArrow(_counting(job), METRICS),
        len(tree.order),
    )


METRICS = (
    "part bigint, rows bigint, rejected bigint, published bigint, suppressed bigint, groups bigint, "
    "smallest bigint, loss double"
)


def _declared(schema: Schema, columns: list[str]) -> list[str]:
    """Return the columns that the policy names: nothing else leaves the frame."""
    names = {*schema.policy.attributes, schema.subject}
    for column in schema.sensitive:
        names |= {column.guard_field, column.psf_field}
    for action in schema.actions.values():
        names |= set(action.reads)
    return [f"`{name}`" for name in columns if name in names]


def _tree(frame: Any, schema: Schema, count: int, parts: int | None, least: int) -> CutTree:
    """Grow the tree on a sample drawn by Spark, the same for the same frame."""
    number = wanted(count, parts, least, MOST)
    if number == 1:
        return CutTree((), (0,))
    share = min(1.0, 1.2 * SAMPLE / max(count, 1))
    sample = frame.sample(False, share, seed=0) if share < 1 else frame
    rows = _encoded(schema, sample.toArrow()).batch
    return grow(rows.qi, schema, number, max(least, 2 * schema.requirements.k) * len(rows) / count)


def _encoded(schema: Schema, table: Any, part: int = 0) -> Encoded:
    """Encode the rows of an Arrow table in their order; a row's number is its place."""
    batches = table.combine_chunks().to_batches()
    encoder, n = Encoder(schema, stable_subjects=True), table.num_rows
    rows: Any = ArrowRows(batches[0]) if batches else []
    ref = np.stack([np.full(n, part, dtype=np.int64), np.arange(n)], axis=1)
    return encoder.encode(rows, ref, np.zeros(n))


def _placed_schema(frame: Any) -> Any:
    from pyspark.sql.types import LongType, StructField, StructType

    return StructType([*frame.schema.fields, StructField(PART, LongType(), False)])


def _placing(job: _Job) -> Callable[[Any], Any]:
    """Return what gives each row its part; a row that cannot be read is counted in the first."""

    def place(batches: Any) -> Any:
        import pyarrow as pa

        schema = _schema_of(job)
        for batch in batches:
            part = np.zeros(batch.num_rows, dtype=np.int64)
            with _told_without_values():
                encoded = _encoded(schema, pa.Table.from_batches([batch]))
                part[encoded.batch.ref[:, 1]] = job.tree.parts_of(encoded.batch.qi)
            yield batch.append_column(pa.field(PART, pa.int64(), nullable=False), pa.array(part))

    return place


def _publishing(job: _Job) -> Callable[[Any, Any], Any]:
    """Return what makes published records of the rows of a part."""

    def publish(key: tuple[Any, ...], table: Any) -> Any:
        schema = _schema_of(job)
        with _told_without_values():
            groups = sorted(_divided(job, schema, key, table)[1].groups, key=lambda group: group.id)
            if not groups:
                return empty_table(schema, table.schema)
            shape = empty_table(schema, table.schema).schema
            return published_table(groups, solid(shape, groups)).cast(shape)

    return publish


def _counting(job: _Job) -> Callable[[Any, Any], Any]:
    """Return what counts the rows of a part, and what became of them."""

    def count(key: tuple[Any, ...], table: Any) -> Any:
        import pyarrow as pa

        schema = _schema_of(job)
        with _told_without_values():
            encoded, found = _divided(job, schema, key, table)
        sizes = [len(group) for group in found.groups]
        lost = sum(group.loss * len(group) for group in found.groups) + len(found.suppressed)
        told = {
            "part": key[0].as_py(),
            "rows": table.num_rows,
            "rejected": len(encoded.rejections),
            "published": sum(sizes),
            "suppressed": len(found.suppressed),
            "groups": len(sizes),
            "smallest": min((group.people for group in found.groups), default=0),
        }
        columns = {name: pa.array([value], pa.int64()) for name, value in told.items()}
        return pa.table(columns | {"loss": pa.array([lost / max(len(encoded.batch), 1)], pa.float64())})

    return count


def _divided(job: _Job, schema: Schema, key: tuple[Any, ...], table: Any) -> tuple[Encoded, Any]:
    """Put the rows of a part into an order of their own, and divide them."""
    table = table.drop_columns([PART])
    table = table.sort_by([(name, "ascending") for name in table.column_names])
    encoded = _encoded(schema, table, key[0].as_py())
    return encoded, partition(job.algorithm, encoded.batch, schema, job.options, job.seed, observed=True)


@contextmanager
def _told_without_values() -> Iterator[None]:
    """Name the kind of a failure only: its text could hold a value, and Spark writes it into logs and to the driver."""
    try:
        yield
    except StreamAnonError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise StreamAnonError(f"a part cannot be anonymized ({kind}): columns cast to string may help") from None


def _facts(frame: Any, job: _Job) -> tuple[Any, ...]:
    """Return the different combinations of sensitive values and wishes in the frame, and how often each is there."""
    width = 2 * len(Schema.of(job.policy).sensitive)
    names = [f"f{i}" for i in range(width)]

    def count(batches: Any) -> Any:
        import pyarrow as pa

        schema = _schema_of(job)
        for batch in batches:
            with _told_without_values():
                rows = _encoded(schema, pa.Table.from_batches([batch])).batch
            found, times = np.unique(np.hstack([rows.sensitive, rows.psf]), axis=0, return_counts=True)
            columns = [pa.array(found[:, i]) for i in range(width)]
            yield pa.RecordBatch.from_arrays([*columns, pa.array(times)], [*names, "times"])

    shape = ", ".join(f"{name} bigint" for name in [*names, "times"])
    rows = frame.mapInArrow(count, shape).groupBy(*names).sum("times").collect()
    return tuple(sorted(tuple(row) for row in rows))


def _schema_of(job: _Job) -> Schema:
    return _cached(_Key(job))


class _Key:
    """A job as the key of a cache: jobs of one process are one if all that decides about groups is."""

    def __init__(self, job: _Job) -> None:
        self.job = job
        secret = job.policy.secret
        self._told = (job.policy.model_dump_json(), secret.get_secret_value() if secret else "", job.facts)

    def __hash__(self) -> int:
        return hash(self._told)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._told == other._told


@lru_cache(maxsize=4)
def _cached(key: _Key) -> Schema:
    """Build the schema once per process, and show its models the whole."""
    schema = Schema.of(key.job.policy)
    for row in key.job.facts or ():
        *codes, times = row
        width = len(codes) // 2
        schema.requirements.observe(_alike(np.array(codes[:width]), np.array(codes[width:]), times, len(schema.quasi)))
    return schema


def _alike(sensitive: Any, psf: Any, times: int, width: int) -> Batch:
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
