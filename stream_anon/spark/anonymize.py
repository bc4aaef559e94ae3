"""Anonymize a DataFrame part by part: the driver grows a tree on a sample, executors anonymize parts in Arrow.

Spark computes a part again when a task dies, or when a frame is used twice. That must not publish a row in another
group: a part's rows are put into an order of their own first, so that its groups are a function of its rows, the policy
and the secret, wherever and however often they are computed. Rows must have come from a frame that gives the same rows
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec

from stream_anon.batch import build
from stream_anon.batch.cut_tree import LEAST, MOST, SAMPLE, CutTree, grow, wanted
from stream_anon.batch.support import check
from stream_anon.core.hierarchy import Ints
from stream_anon.core.loss.columns import bins_of
from stream_anon.core.schema import Schema
from stream_anon.errors import Unsupported
from stream_anon.local.anonymize import sums_of
from stream_anon.local.parts.divided import Told, Way
from stream_anon.local.summary import summary_of
from stream_anon.observe.tally import Tally
from stream_anon.policy import Policy
from stream_anon.spark.shape import arrow_shape, spark_shape, types_of
from stream_anon.spark.tasks import (
    DIVIDED,
    METRICS,
    PLACED,
    Job,
    counting_values,
    dividing,
    encoded,
    merge,
    names_of_facts,
    placing,
    show,
)

FEWEST_BUCKETS = 32


@dataclass(frozen=True, repr=False)
class SparkResult:
    """What came of a DataFrame, lazily: each frame anonymizes the rows again, into the same groups, unless it persists.

    `divided` has the records as bytes, and what was counted; the other frames are made of it.
    """

    divided: Any
    parts: int
    schema: Schema
    _job: Job
    _shape: Any

    @cached_property
    def table(self) -> Any:
        """The published records; those of one part come together."""
        return self._records("records").mapInArrow(show, self._shape)

    @cached_property
    def in_order(self) -> Any:
        """The published records in the order of group ids, which tells no parts. `persist` first: it looks twice."""
        return self._records("bucket", "ids", "sizes", "records").orderBy("bucket").mapInArrow(merge, self._shape)

    @cached_property
    def metrics(self) -> Any:
        """A row of counts for each part."""
        names = [column.split()[0] for column in METRICS.split(", ")]
        return self.divided.where("figures is not null").select(*names)

    def persist(self) -> SparkResult:
        """Keep what is computed on the executors' disks, so that all frames are made of one computation."""
        from pyspark import StorageLevel

        self.divided.persist(StorageLevel.DISK_ONLY)
        return self

    def unpersist(self) -> None:
        """Forget what `persist` keeps."""
        self.divided.unpersist()

    def figures(self) -> list[dict[str, Any]]:
        """Compute all parts, and return what was counted in each."""
        rows = self.divided.where("figures is not null").select("figures").collect()
        return sorted((msgspec.json.decode(row.figures) for row in rows), key=lambda part: int(part["part"]))

    def tally(self, figures: Sequence[Mapping[str, Any]]) -> Tally:
        """Return the counts of all parts together."""
        schema = self.schema
        tally = Tally([column.name for column in schema.quasi], schema.requirements.k, schema.counts)
        for part in figures:
            tally.consumed += part["rows"]
            tally.rejected.update(part["rejected"])
            tally.add(part)
        return tally

    def summary(self, figures: Sequence[Mapping[str, Any]] | None = None) -> dict[str, Any]:
        """Return counts, losses and measures as `anonymize --json` does; this computes all parts."""
        figures = self.figures() if figures is None else figures
        tally, sums = self.tally(figures), sums_of(self.schema, self._job.way.bins)
        for part in figures:
            sums.merge(part["sums"])
        found = summary_of(self._job.way.algorithm, tally, sums.measures(tally.k))
        return found | {"parts": [part["rows"] for part in figures]}

    def _records(self, *columns: str) -> Any:
        return self.divided.where("records is not null").select(*columns)


def anonymize(
    frame: Any,
    policy: Policy,
    algorithm: str = "sweep",
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    parts: int | None = None,
    least: int = LEAST,
    told: Told | None = None,
) -> SparkResult:
    """Anonymize a Spark DataFrame by a batch algorithm.

    Rows that cannot be read, and those that find no place in their part, are counted in `metrics` and not published.
    The policy needs a secret: a part that is computed again must get the same groups. Raises `PolicyError` and
    `Unsupported` before any work. `least` is the number of rows below which no part is cut off; `told` returns what
    `figures` shall tell of the groups of a part beside the counts.
    """
    schema = Schema.of(policy)
    build(algorithm, options, seed)
    check(algorithm, schema)
    if not schema.keys.stable:
        raise Unsupported("Spark may compute a part twice, and only a policy with a secret gives the same groups again")
    if not schema.template.flat:
        raise Unsupported("fields inside others cannot be published through Spark: select them into columns first")
    frame = frame.select(*(_declared(schema, frame.columns)))
    shape = arrow_shape(schema, types_of(frame.schema))
    tree, bins = _tree(frame, schema, frame.count(), parts, least)
    buckets = max(FEWEST_BUCKETS, 1 << len(tree.order).bit_length())
    job = Job(policy, Way(algorithm, options, seed, bins, told), tree, shape, buckets)
    if any(getattr(settings, "learns", False) for settings in policy.privacy):
        job = replace(job, facts=_facts(frame, job))
    placed = frame.mapInArrow(placing(job), PLACED)
    divided = placed.groupBy("part").applyInArrow(dividing(job), DIVIDED)
    return SparkResult(divided, len(tree.order), schema, job, spark_shape(shape))


def _declared(schema: Schema, columns: list[str]) -> list[str]:
    """Return the columns that the policy names: nothing else leaves the frame."""
    names = {*schema.policy.attributes, schema.subject}
    for column in schema.sensitive:
        names |= {column.guard_field, column.psf_field}
    for action in schema.actions.values():
        names |= set(action.reads)
    return [f"`{name}`" for name in columns if name in names]


def _tree(frame: Any, schema: Schema, count: int, parts: int | None, least: int) -> tuple[CutTree, list[list[int]]]:
    """Grow the tree on a sample drawn by Spark, the same for the same frame; return the bins of its columns, too."""
    share = min(1.0, 1.2 * SAMPLE / max(count, 1))
    sample = frame.sample(False, share, seed=0) if share < 1 else frame
    rows: Ints = encoded(schema, sample.toArrow(), stable=False).batch.qi
    fewest = max(least, 2 * schema.requirements.k) * len(rows) / max(count, 1)
    return grow(rows, schema, wanted(count, parts, least, MOST), fewest), bins_of(rows)


def _facts(frame: Any, job: Job) -> tuple[Any, ...]:
    """Return the different combinations of sensitive values and wishes in the frame, and how often each is there."""
    names = names_of_facts(Schema.of(job.policy))
    shape = ", ".join(f"{name} bigint" for name in [*names, "times"])
    rows = frame.mapInArrow(counting_values(job), shape).groupBy(*names).sum("times").collect()
    return tuple(sorted(tuple(row) for row in rows))
