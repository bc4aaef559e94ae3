"""Anonymize a Spark DataFrame: cut it along a quasi-identifier, and anonymize every part where it lies.

Spark computes a part again when a task dies. That must not publish a row in another group, so the rows of a part are
put into an order of their own first: groups are a function of the ordered rows, the policy and its secret.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import Any

import pyarrow
import visits
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

import stream_anon

PUBLISHED = (
    "age array<bigint>, zip string, diagnosis string, "
    "_anon struct<policy: string, group: string, row: bigint, size: bigint, subjects: bigint, loss: double>"
)


def anonymize_part(key: tuple[Any, ...], rows: pyarrow.Table) -> pyarrow.Table:
    """Anonymize the rows of one part; `part` keeps the ids of its groups apart from those of others."""
    ordered = rows.sort_by([(name, "ascending") for name in ("patient", "age", "zip", "diagnosis")])
    return stream_anon.anonymize(ordered, visits.policy(), part=key[0].as_py()).table


os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need the same packages
settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
spark.sparkContext.addPyFile(visits.__file__)
frame = spark.createDataFrame(visits.visits(2_000))
cuts = frame.approxQuantile("age", [0.33, 0.67], 0.01)  # neighbours stay together: parts at random would lose more
part = sum((sql.when(sql.col("age") >= cut, 1).otherwise(0) for cut in cuts), start=sql.lit(0))
anonymous = frame.withColumn("part", part).groupBy("part").applyInArrow(anonymize_part, PUBLISHED)

sizes = Counter(row["group"] for row in anonymous.select("_anon.group").collect())
again = Counter(row["group"] for row in anonymous.select("_anon.group").collect())
spark.stop()
print(f"{sum(sizes.values())} of 2000 rows in {len(sizes)} groups of {min(sizes.values())} or more")
assert min(sizes.values()) >= 5
assert sum(sizes.values()) >= 1_900
assert sizes == again
