"""What waits on disk: it is continued only as it was left, by one run at a time, and no process outlives its run."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import select
import signal
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import stream_anon
from stream_anon.cli import parts as command
from stream_anon.cli import run_command
from stream_anon.core.schema import Schema
from stream_anon.errors import StreamAnonError
from stream_anon.formats.tables import TableError, read_parts
from stream_anon.local.parts import run as module
from stream_anon.local.parts.place import SpillError, kept_folder, private_folder
from stream_anon.local.parts.run import Job, PartedAnonymization, Sizes

POLICY = """\
version: 1
name: people
secret: a-secret-that-is-long-enough-for-a-test
subject: patient
attributes:
  patient: {role: identifier}
  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 120], snap: [5, 20]}}
  illness: {role: sensitive}
  ward: {role: insensitive}
privacy:
  - {model: k_anonymity, k: 4}
"""
SMALL = Sizes(parts=2, least=20, sample=100)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(POLICY)
    with Path("t.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["patient", "age", "illness", "ward"])
        rows.writerows([f"p{i}", i % 90, f"i{i % 9}", f"w{i}"] for i in range(100))
    return tmp_path


def begun(folder: Path, data: str = "t.csv", out: str = "o.jsonl") -> PartedAnonymization:
    """Return a run that has read its rows, or found them read."""
    schema = Schema.of(stream_anon.load_policy(Path("policy.yaml")))
    folder.mkdir(exist_ok=True)
    job = Job(schema, "mondrian", None, 0, folder, Path(out).resolve(), True)
    run = PartedAnonymization(job, SMALL)
    run.read(read_parts(Path(data)), lambda rejected: None, lambda share: None)
    return run


def finished(run: PartedAnonymization) -> None:
    run.divide(lambda share: None)
    with run.job.target.open("wb") as file:
        run.write(file, lambda share: None)


def test_one_run_at_a_time(place: Path) -> None:
    with kept_folder(place / "own", "a"):
        with pytest.raises(SpillError, match="another run works in it"), kept_folder(place / "own", "a"):
            pass
        assert (place / "own" / "job").exists()


def test_another_secret_does_not_go_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some groups would have ids, and some fields values, of the one secret, and others of the other."""

    def full(path: Path, overwrite: bool) -> Any:
        raise OSError(28, "No space left on device")

    asked = ["anonymize", "t.csv", "-p", "policy.yaml", "-o", "o.jsonl", "--parts", "2", "--spill", "kept"]
    with monkeypatch.context() as patched:
        patched.setattr(command, "new_file", full)
        assert run_command(asked) == TableError.exit_code
    Path("policy.yaml").write_text(POLICY.replace("a-secret", "no-secret"))
    assert run_command(asked) == SpillError.exit_code
    Path("policy.yaml").write_text(POLICY)
    assert run_command(asked) == 0
    assert not Path("kept").exists()


@pytest.mark.parametrize("damage", ["gone", "cut", "half"])
def test_rows_that_are_missing_are_missed(place: Path, damage: str) -> None:
    begun(place / "f")
    rows = place / "f" / "part-1.rows"
    match damage:
        case "gone":
            rows.unlink()
        case "cut":
            rows.write_bytes(b"")
        case _:
            rows.write_bytes(rows.read_bytes()[:-9])
    with pytest.raises(SpillError, match="begin again"):
        begun(place / "f")


def test_rows_that_a_part_could_not_place_are_missed(place: Path) -> None:
    """A part is noted as finished, and what it published or left to its neighbour is not there."""
    run = begun(place / "f")
    figures = {"published": 0, "suppressed": 0, "smallest": 0, "groups": {}, "raised": {}, "lost_by_raising": {}}
    (place / "f" / "1.done").write_text(json.dumps(figures | {"losses": [0.0], "loss": 0.0}))
    with pytest.raises(SpillError, match="missing"):
        run.divide(lambda share: None)


def test_a_fragment_that_was_cut_off_is_not_written(place: Path) -> None:
    run = begun(place / "f")
    run.divide(lambda share: None)
    fragment = place / "f" / "0.out"
    fragment.write_bytes(fragment.read_bytes()[:-5])
    with pytest.raises(SpillError, match="damaged"), Path("o.jsonl").open("wb") as file:
        run.write(file, lambda share: None)


def ends_its_parent(task: Any) -> None:
    os.kill(os.getppid(), signal.SIGTERM)
    threading.Event().wait()


def dies(task: Any) -> None:
    os._exit(9)


def works_for_ever(task: Any) -> None:
    os.write(int(os.environ["TOLD"]), b"x")
    threading.Event().wait()


def test_a_signal_does_not_wait_for_parts(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_work", ends_its_parent)
    with pytest.raises(SystemExit), command._ended_by_signal(), private_folder(place / "o.csv") as folder:
        finished(begun(folder))
    assert not folder.exists()
    assert not multiprocessing.active_children()


def test_a_process_that_was_killed_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_work", dies)
    with pytest.raises(StreamAnonError, match="ended from outside"):
        finished(begun(place / "f"))


def test_no_process_outlives_a_run_that_was_killed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would go on to write into a folder that the next run continues in."""
    told, tell = os.pipe()
    monkeypatch.setenv("TOLD", str(tell))
    monkeypatch.setattr(module, "_work", works_for_ever)
    run = begun(place / "f")
    child = os.fork()
    if not child:
        finished(run)
        os._exit(0)
    os.close(tell)
    assert os.read(told, 1) == b"x"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    ready, _, _ = select.select([told], [], [], 60)
    assert ready
    assert os.read(told, 1) == b""  # nobody holds the other end any more
    os.close(told)


def test_text_does_not_become_a_number(place: Path) -> None:
    """One part has numbers in a column and another has text: as a whole table it could not be written either."""

    def write(old: Any, young: Any) -> None:
        with Path("t.jsonl").open("w") as file:
            for i in range(100):
                age, ward = (10, young) if i % 2 else (70, old)
                file.write(json.dumps({"patient": f"p{i}", "age": age, "illness": "flu", "ward": ward}) + "\n")

    for name, pair in {"a": (7, "007"), "b": ("007", 7), "c": (True, 7)}.items():
        write(*pair)
        with pytest.raises(TableError, match="different types"):
            finished(begun(place / name, "t.jsonl", "o.parquet"))
    Path("t.jsonl").write_text(Path("t.jsonl").read_text().replace("true", '"yes"', 9))
    with pytest.raises(TableError, match="different types"):  # in one part, too
        finished(begun(place / "x", "t.jsonl", "o.parquet"))
    for name, pair in {"d": (7, None), "e": (None, 7)}.items():
        write(*pair)
        finished(begun(place / name, "t.jsonl", "o.parquet"))
        table = pa.parquet.read_table("o.parquet")
        assert (table.schema.field("ward").type, set(table.column("ward").to_pylist())) == (pa.int64(), {7, None})


@pytest.mark.parametrize("out", ["o.csv", "o.jsonl.gz", "o.parquet"])
def test_a_table_without_rows(place: Path, out: str) -> None:
    Path("policy.yaml").write_text(POLICY + "  - {model: l_diversity, attribute: illness, l: 2}\n")
    Path("t.csv").write_text("patient,age,illness,ward\n")
    assert run_command(["anonymize", "t.csv", "-p", "policy.yaml", "-o", out, "--parts", "auto"]) == 0
    assert Path(out).exists()
