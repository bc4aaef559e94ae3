"""`anonymize` and `replay`, as a user calls them."""

from __future__ import annotations

import csv
import json
import re
import shlex
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stream_anon.batch import partition
from stream_anon.cli import run_command as run
from stream_anon.cli.prepare import prepare
from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoder
from stream_anon.demo import admissions, policy_text
from stream_anon.formats.format import Format
from stream_anon.formats.json_lines import JsonLines
from stream_anon.formats.tables import known_formats, read_parts
from stream_anon.local.anonymize import Anonymization
from stream_anon.replay.replay import instant

COUNT = 300


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A policy with a secret, and its records with a time, as JSON lines and as CSV."""
    text = policy_text().replace("version: 1", "version: 1\nsecret: a secret only for the tests, of no value", 1)
    (tmp_path / "policy.yaml").write_text(text, encoding="utf-8")
    records = [json.loads(record) for record in islice(admissions(3), COUNT)]
    for i, record in enumerate(records):
        record["at"] = 1_700_000_000 + i // 20
    with (tmp_path / "data.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    with (tmp_path / "data.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    return tmp_path


def call(place: Path, command: str, data: str, out: str, *more: str) -> int:
    return run([command, str(place / data), "-p", str(place / "policy.yaml"), "-o", str(place / out), *more])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("data", ["data.jsonl", "data.csv"])
@pytest.mark.parametrize("name", ["sweep", "mondrian", "l-clustering"])
def test_anonymize(place: Path, data: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(place, "anonymize", data, "out.jsonl", "--algorithm", name, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    records = lines(place / "out.jsonl")
    assert found["published"] == len(records) == COUNT
    assert min(record["_anon"]["subjects"] for record in records) >= found["required_people"]
    assert {"classes", "loss_per_attribute", "suppressed", "cpu_seconds", "peak_mb"} <= set(found)
    text = (place / "out.jsonl").read_text(encoding="utf-8")
    assert not any(word in text for word in ("Person", "patient_id", '"at"', "index"))
    assert call(place, "anonymize", data, "again.jsonl", "--algorithm", name) == 0
    assert ("chooses rows by their sensitive values" in capsys.readouterr().err) == (name == "l-clustering")


def test_csv_and_json_say_the_same(place: Path) -> None:
    assert call(place, "anonymize", "data.csv", "out.csv", "--seed", "1") == 0
    assert call(place, "anonymize", "data.jsonl", "out.jsonl", "--seed", "1") == 0
    with (place / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    records = lines(place / "out.jsonl")
    assert [row["_anon.group"] for row in rows] == [record["_anon"]["group"] for record in records]
    assert [json.loads(row["birth_year"]) for row in rows] == [record["birth_year"] for record in records]


def test_parquet(place: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra parquet is not installed")
    assert call(place, "anonymize", "data.jsonl", "out.parquet") == 0
    assert parquet.read_table(place / "out.parquet").num_rows == COUNT


def test_nothing_is_overwritten_and_nothing_is_left_behind(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "out.jsonl").write_text("mine", encoding="utf-8")
    assert call(place, "anonymize", "data.jsonl", "out.jsonl") == 1
    assert "--force" in capsys.readouterr().err
    assert (place / "out.jsonl").read_text(encoding="utf-8") == "mine"
    assert call(place, "anonymize", "data.jsonl", "out.jsonl", "--force") == 0
    assert not list(place.glob(".*.tmp"))


def test_rejected_rows_are_told_without_their_values(place: Path) -> None:
    with (place / "data.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"patient_id": "P1", "birth_year": "unspeakable"}\n')
    letters = place / "dead.jsonl"
    assert call(place, "anonymize", "data.jsonl", "out.jsonl", "--dead-letters", str(letters)) == 0
    assert lines(letters) == [{"line": COUNT + 1, "code": "wrong_type", "column": "birth_year"}]
    assert "unspeakable" not in letters.read_text(encoding="utf-8")


def test_long_work_needs_a_yes(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("stream_anon.batch.k_member.KMember.nanoseconds", 1e9)
    assert call(place, "anonymize", "data.jsonl", "out.jsonl", "-a", "k-member") == 2
    assert "--yes" in capsys.readouterr().err
    assert not (place / "out.jsonl").exists()
    assert call(place, "anonymize", "data.jsonl", "out.jsonl", "-a", "k-member", "--yes") == 0


MISTAKES = [
    # remark, arguments, exit code, what the message names
    ("an unknown algorithm", ("-a", "swep"), 3, "sweep"),
    ("an algorithm made for something else", ("-a", "guarding"), 3, "these can"),
    ("an unknown option", ("--set", "depth=3"), 3, "depth"),
    ("an option without a value", ("--set", "depth"), 2, "key=value"),
]


@pytest.mark.parametrize(("more", "code", "word"), [c[1:] for c in MISTAKES], ids=[c[0] for c in MISTAKES])
def test_mistakes(place: Path, more: tuple[str, ...], code: int, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(place, "anonymize", "data.jsonl", "out.jsonl", *more) == code
    assert word in capsys.readouterr().err
    assert call(place, "anonymize", "data.jsonl", "out.xlsx") == 1


@pytest.mark.parametrize("more", [("--time", "at"), ("--algorithm", "sweep")])
@pytest.mark.parametrize(
    "out", ["out.jsonl", "out.csv", "out.json", "out.avro", "out.parquet", "out.jsonl.gz", "out.csv.zst"]
)
def test_replay_goes_on_where_it_was_cut(place: Path, more: tuple[str, ...], out: str) -> None:
    assert call(place, "replay", "data.jsonl", out, *more) == 0
    whole = (place / out).read_bytes()
    (place / out).unlink()
    for cut in (1, len(whole) // 3, len(whole) - 1, len(whole)):
        (place / f"{out}.partial").write_bytes(whole[:cut])
        assert call(place, "replay", "data.jsonl", out, *more) == 0
        assert (place / out).read_bytes() == whole
        (place / out).unlink()


def test_replay_refuses_what_another_run_wrote(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "out.jsonl.partial").write_bytes(b'{"something": "else"}\n')
    assert call(place, "replay", "data.jsonl", "out.jsonl", "--time", "at") == 1
    assert "remove it" in capsys.readouterr().err
    assert not (place / "out.jsonl").exists()


def test_replay_keeps_the_bound_on_the_recordings_clock(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(place, "replay", "data.csv", "out.jsonl", "--time", "at", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["published"] + found["suppressed"] == COUNT
    assert 0 < found["delay_max"] <= 3.0


def test_replay_needs_a_clock(place: Path) -> None:
    assert call(place, "replay", "data.jsonl", "out.jsonl") == 2


def test_instants() -> None:
    assert instant("2026-03-08T14:00:00+02:00") == instant("2026-03-08T12:00:00Z") == instant("2026-03-08T12:00:00")
    assert instant(None) != instant(None)  # not a number
    assert instant("soon") != instant("soon")


def test_many_classes_are_absorbed(place: Path) -> None:
    """Two values and heavy ties make L-clustering absorb finished classes; nothing is lost on the way."""
    _, schema = prepare(place / "policy.yaml")
    encoder = Encoder(schema)
    rows = Batch.concat([part.encode(encoder, np.zeros(len(part))).batch for part in read_parts(place / "data.jsonl")])
    for seed in range(5):
        found = partition("l-clustering", rows, schema, seed=seed)
        assert sum(map(len, found.classes)) + len(found.suppressed) == len(rows)


@pytest.mark.parametrize("command", [("anonymize",), ("replay", "-a", "sweep")])
def test_compiling_is_said_only_when_it_is_done(
    place: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    numba = pytest.importorskip("numba")

    def call_and_read(out: str) -> str:
        assert call(place, command[0], "data.jsonl", out, *command[1:], "--json") == 0
        told = capsys.readouterr()
        assert json.loads(told.out)["published"] == COUNT
        return told.err

    monkeypatch.setattr(Anonymization, "warm_up", lambda self: numba.njit(lambda x: x + 1)(1))
    told = call_and_read("one.jsonl")
    assert "compiling the kernels" in told
    assert re.search(r"compiled the kernels, once for this machine: \d+ s", told)
    monkeypatch.setattr(Anonymization, "warm_up", lambda self: None)
    assert "compil" not in call_and_read("two.jsonl")


def test_a_warm_up_leaves_no_trace(place: Path) -> None:
    """A model that learns from the whole learns from it once, and few rows are no reason to fail."""
    text = (place / "policy.yaml").read_text(encoding="utf-8")
    learned = "{model: t_closeness, attribute: diagnosis, t: 0.9, estimate: {after: 250}}"
    (place / "policy.yaml").write_text(text.replace("privacy:", f"privacy:\n  - {learned}", 1), encoding="utf-8")
    groups = []
    for warm in (False, True):
        run = Anonymization(prepare(place / "policy.yaml")[1], "sweep")
        run.read(read_parts(place / "data.jsonl"), lambda rejections: None, lambda share: None)
        if warm:
            run.warm_up()
        run.divide(lambda share: None)
        groups.append([group.id for group in run.groups])
    assert groups[0] == groups[1] != []


def test_report(place: Path) -> None:
    assert call(place, "anonymize", "data.jsonl", "out.jsonl", "--report", str(place / "report.html")) == 0
    page = (place / "report.html").read_text(encoding="utf-8")
    assert "birth_year" in page
    assert "<script" not in page
    assert "http" not in page


def test_a_folder_that_is_not_there_is_told_before_the_work(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(place, "anonymize", "data.jsonl", "nowhere/out.csv") == 1
    folder = place / "nowhere"
    assert (
        capsys.readouterr().err
        == f"error: {folder / 'out.csv'}: cannot be written: there is no folder {folder}: create it, or name another\n"
    )


def test_the_next_step_is_the_audit(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(place, "anonymize", "data.jsonl", "an out.jsonl", "--algorithm", "mondrian") == 0
    *_, step = capsys.readouterr().err.splitlines()
    assert step.startswith("next: stream-anon audit '")
    assert run(shlex.split(step)[2:]) == 0


class ReadOnly(JsonLines):
    """Lines that can be read, and not written."""

    suffixes = (".log",)
    writer = Format.writer


def test_what_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(known_formats(), ".log", ReadOnly())
    policy = tmp_path / "policy.yaml"
    policy.write_text(policy_text(), encoding="utf-8")
    absent = str(tmp_path / "absent.jsonl")  # it is not even looked at
    assert run(["anonymize", absent, "-p", str(policy), "-o", str(tmp_path / "o.log")]) == 1
    assert "can be read, not written" in capsys.readouterr().err
