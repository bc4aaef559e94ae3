"""DataFrames through a real local Spark: recounted by Spark SQL, computed twice, with a task that dies."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stream_anon
from stream_anon.cli import run_command
from stream_anon.errors import StreamAnonError, Unsupported

pytest.importorskip("pyspark")
if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
    if os.environ.get("STREAM_ANON_REQUIRE_ALL"):
        raise RuntimeError("Spark needs Java 17 or later, and there is none")
    pytest.skip("Spark needs Java 17 or later, and there is none", allow_module_level=True)

from stream_anon import spark as anon
from stream_anon.spark.tasks import told_without_values

POLICY: dict[str, Any] = {
    "version": 1,
    "name": "people",
    "secret": "a-secret-that-is-long-enough-for-a-test",
    "subject": "patient",
    "attributes": {
        "patient": {"role": "identifier"},
        "age": {
            "role": "quasi_identifier",
            "type": "integer",
            "hierarchy": {"kind": "interval", "range": [0, 120], "snap": [5, 20]},
        },
        "zip": {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "prefix", "length": 3}},
        "illness": {"role": "sensitive"},
        "ward": {"role": "insensitive"},
    },
    "privacy": [
        {"model": "k_anonymity", "k": 4},
        {"model": "l_diversity", "attribute": "illness", "l": 2},
        {"model": "t_closeness", "attribute": "illness", "t": 0.6, "estimate": {"after": 1000}},
    ],
}
ROWS = 1_200


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
    }
    made = SparkSession.builder.master("local[2,4]").config(map=settings).getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


def people(session: Any) -> Any:
    age, zipped = "cast(pmod(hash(id), 90) as bigint) age", "lpad(pmod(hash(id, 1), 1000), 3, '0') zip"
    others = "concat('i', pmod(hash(id, 2), 7)) illness, id ward, concat('secret', id) name"
    return session.sql(f"select concat('p', id) patient, {age}, {zipped}, {others} from range(0, {ROWS}, 1, 3)")


def test_recounted_by_spark(session: Any) -> None:
    policy = stream_anon.Policy.model_validate(POLICY)
    result = anon.anonymize(people(session), policy, "mondrian", parts=3, least=200).persist()
    assert result.parts == 3
    table = result.table.cache()
    assert table.columns == ["age", "zip", "illness", "ward", "_anon"]
    table.createOrReplaceTempView("anonymous")
    groups = session.sql(
        "select count(*) rows, count(distinct illness) l, first(_anon.size) size, "
        "count(distinct struct(age, zip)) labels from anonymous group by _anon.group"
    ).collect()
    assert min(group.rows for group in groups) >= 4
    assert min(group.l for group in groups) >= 2
    assert all(group.rows == group.size and group.labels == 1 for group in groups)
    [whole] = session.sql("select count(*) rows, count(distinct ward) wards from anonymous").collect()
    metrics = [row.asDict() for row in result.metrics.collect()]
    assert (whole.rows, whole.wards) == (sum(row["published"] for row in metrics),) * 2
    assert sum(row["rows"] for row in metrics) == ROWS
    assert all(row["rows"] == row["published"] + row["suppressed"] + row["rejected"] for row in metrics)
    assert len(groups) == sum(row["groups"] for row in metrics)
    assert whole.rows > 0.9 * ROWS
    summary = result.summary()
    assert (summary["rows"], summary["published"], summary["classes"]) == (ROWS, whole.rows, len(groups))
    assert summary["measures"]["average_class_size"] == round(whole.rows / len(groups) / 4, 5)
    assert summary["parts"] == [row["rows"] for row in sorted(metrics, key=lambda row: row["part"])]
    ordered = [row.asDict(recursive=True) for row in result.in_order.collect()]
    names = [(row["_anon"]["group"], row["_anon"]["row"]) for row in ordered]
    assert names == sorted(names)
    rows = [row.asDict(recursive=True) for row in table.collect()]
    assert sorted(map(repr, rows)) == sorted(map(repr, ordered))
    table.unpersist()
    result.unpersist()


def test_computed_again_where_a_task_died(session: Any, tmp_path: Path) -> None:
    """A task that is killed, other partitions and another order of rows: every row is in the group it was in."""
    armed = tmp_path / "armed"

    def deadly(batches: Any) -> Any:
        for batch in batches:
            try:
                armed.unlink()
            except FileNotFoundError:
                yield batch
            else:
                os.kill(os.getpid(), signal.SIGKILL)

    policy = stream_anon.Policy.model_validate(POLICY)
    frame = people(session)
    dying = frame.mapInArrow(deadly, frame.schema)
    first = anon.anonymize(dying, policy, "mondrian", parts=2, least=200).table
    groups = {row.ward: row.g for row in first.selectExpr("ward", "_anon.group g").collect()}
    armed.touch()
    again = {row.ward: row.g for row in first.selectExpr("ward", "_anon.group g").collect()}
    assert not armed.exists()
    assert again == groups
    assert len(groups) > 0.9 * ROWS


def test_failures_tell_no_values() -> None:
    """Spark writes what is raised in a task into its logs; Arrow names the value that it cannot convert."""
    with pytest.raises(StreamAnonError, match="ArrowInvalid") as told, told_without_values():
        pa.array(["leprosy"], pa.int64())
    assert "leprosy" not in "".join(traceback.format_exception(told.value))


def test_what_cannot_be_promised_is_refused(session: Any) -> None:
    plain = {name: value for name, value in POLICY.items() if name != "secret"}
    with pytest.raises(Unsupported, match="secret"):
        anon.anonymize(people(session), stream_anon.Policy.model_validate(plain))


def test_rows_that_cannot_be_read_are_counted(session: Any) -> None:
    frame = session.createDataFrame(
        [(f"p{i}", 30 + i % 3, "123" if i else "x", f"i{i % 2}", i) for i in range(30)],
        "patient string, age long, zip string, illness string, ward long",
    )
    policy = POLICY | {"privacy": POLICY["privacy"][:1]}
    result = anon.anonymize(frame, stream_anon.Policy.model_validate(policy), "mondrian")
    [metrics] = result.metrics.collect()
    assert (metrics.rows, metrics.rejected, metrics.published, metrics.suppressed) == (30, 1, 29, 0)


def test_the_command(session: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(POLICY | {"privacy": POLICY["privacy"][:1]}))
    people(session).write.parquet(str(tmp_path / "t.parquet"))
    command = ["anonymize", str(tmp_path / "t.parquet"), "-p", str(policy), "-a", "mondrian", "--engine", "spark"]
    capsys.readouterr()
    assert run_command([*command, "-o", str(tmp_path / "o.parquet"), "--master", "local[2]", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["published"], found["smallest_group_people"] >= 4) == (ROWS, ROWS, True)
    files = sorted((tmp_path / "o.parquet").glob("*.parquet"))
    ids = [row["_anon"]["group"] for file in files for row in pq.read_table(file).to_pylist()]
    assert ids == sorted(ids)  # where a group stands does not tell its part
    assert len(ids) == ROWS
    page = tmp_path / "page.html"
    assert run_command([*command, "-o", str(tmp_path / "p.parquet"), "--html", str(page)]) == 0
    assert f"{ROWS:,} rows in: {ROWS:,} published" in capsys.readouterr().err
    assert "What is left in each column" in page.read_text()
    assert run_command([*command, "-o", str(tmp_path / "o.csv")]) == Unsupported.exit_code


def test_batches_of_a_stream_as_the_docs_show_them(session: Any, tmp_path: Path) -> None:
    came, anonymous, state = (str(tmp_path / name) for name in ("came", "anonymous", "state"))
    for batch in "12":
        people(session).coalesce(1).write.parquet(f"{came}/{batch}")
    stream = session.readStream.schema(people(session).schema).option("maxFilesPerTrigger", 1).parquet(f"{came}/*")
    page = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"## Structured Streaming.*?```python\n(.*?)```", page, re.DOTALL)
    shown = shown.replace('"anonymous"', repr(anonymous)).replace('"state"', repr(state))  # not in Spark's own folder
    exec(shown, {"spark": anon, "policy": stream_anon.Policy.model_validate(POLICY), "stream": stream})
    [query] = session.streams.active
    query.processAllAvailable()
    query.stop()
    session.read.parquet(anonymous).createOrReplaceTempView("anonymous")
    groups = session.sql("select count(*) rows, first(_anon.size) size from anonymous group by _anon.group").collect()
    assert sum(group.rows for group in groups) > 1.8 * ROWS
    assert all(group.rows >= 4 for group in groups)
