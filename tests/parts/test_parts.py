"""Tables in parts: every row once, the same groups however many processes work, nothing left on disk."""

from __future__ import annotations

import csv
import json
import os
import stat
from collections import Counter
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import stream_anon
from stream_anon.batch.cut_tree import CutTree, Sampler, grow, wanted
from stream_anon.cli import run_command
from stream_anon.cli.results import classes_told, result_of, result_told
from stream_anon.core.encode import Encoder
from stream_anon.core.schema import Schema
from stream_anon.formats.tables import read_parts
from stream_anon.formats.writers import writer_for
from stream_anon.local.anonymize import Anonymization
from stream_anon.local.parts import run as module
from stream_anon.local.parts.place import SpillError, kept_folder, private_folder
from stream_anon.local.parts.run import Job, PartedAnonymization, Sizes
from stream_anon.local.parts.spill import Spill

POLICY = """\
version: 1
name: people
secret: a-secret-that-is-long-enough-for-a-test
subject: patient
attributes:
  patient: {role: identifier}
  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 120], snap: [5, 20]}}
  zip: {role: quasi_identifier, type: category, hierarchy: {kind: prefix, length: 3}}
  illness: {role: sensitive}
  ward: {role: insensitive}
privacy:
  - {model: k_anonymity, k: 4}
"""
T_CLOSE = "  - {model: t_closeness, attribute: illness, t: 0.35, estimate: {after: 1500}}\n"
SMALL = Sizes(parts=5, least=150, sample=500)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(POLICY)
    rng = np.random.default_rng(3)
    with Path("t.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["patient", "age", "zip", "illness", "ward"])
        for i in range(1500):
            zipped = f"{int(rng.gamma(2, 120)) % 1000:03}"
            rows.writerow([f"p{i}", rng.integers(0, 90), zipped, f"i{rng.integers(9)}", f"w{i}"])
        rows.writerow(["", 3, "111", "i1", "nobody"])
    return tmp_path


def anonymized(out: str, folder: Path, sizes: Sizes = SMALL, workers: int = 1, **changes: Any) -> PartedAnonymization:
    schema = Schema.of(stream_anon.load_policy(Path("policy.yaml")))
    options = {"algorithm": "mondrian", "options": None, "seed": 0, "quote_formulas": True} | changes
    folder.mkdir(exist_ok=True)
    run = PartedAnonymization(Job(schema=schema, folder=folder, target=Path(out).resolve(), **options), sizes, workers)
    run.read(read_parts(Path("t.csv"), 400), lambda rejected: None, lambda share: None)
    run.divide(lambda share: None)
    with Path(out).open("wb") as file:
        run.write(file, lambda share: None)
    return run


@pytest.mark.parametrize("algorithm", ["mondrian", "sweep"])
def test_each_row_leaves_once(place: Path, algorithm: str) -> None:
    run = anonymized("o.jsonl", place / "f", algorithm=algorithm)
    records = [json.loads(line) for line in Path("o.jsonl").read_text().splitlines()]
    assert len(run.counts) == 5
    assert min(run.counts) >= 100
    assert Counter(record["ward"] for record in records) == Counter(f"w{i}" for i in range(1500))
    assert (run.tally.published, run.tally.rejected.total(), run.tally.suppressed) == (1500, 1, 0)
    sizes = Counter(record["_anon"]["group"] for record in records)
    assert min(sizes.values()) >= 4
    assert sizes == {r["_anon"]["group"]: r["_anon"]["size"] for r in records}
    assert run_command(["audit", "o.jsonl", "-p", "policy.yaml", "--raw", "t.csv"]) == 0


def test_groups_do_not_depend_on_workers(place: Path) -> None:
    one = anonymized("o.jsonl", place / "f", workers=1)
    two = anonymized("o2.jsonl", place / "g", workers=3)
    assert Path("o.jsonl").read_bytes() == Path("o2.jsonl").read_bytes()
    assert one.summary() == two.summary()


def test_order_tells_nothing_of_parts(place: Path) -> None:
    anonymized("o.jsonl", place / "f")
    groups = [json.loads(line)["_anon"]["group"] for line in Path("o.jsonl").read_text().splitlines()]
    assert groups == sorted(groups)


def test_every_format_holds_the_same(place: Path) -> None:
    anonymized("o.jsonl", place / "f")
    anonymized("o.csv", place / "g")
    anonymized("o.parquet", place / "h")
    records = [json.loads(line) for line in Path("o.jsonl").read_text().splitlines()]
    assert pa.parquet.read_table("o.parquet").to_pylist() == records
    with Path("o.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["ward"], line["_anon.group"]) for line in lines] == [
        (r["ward"], r["_anon"]["group"]) for r in records
    ]


def test_one_part_is_the_whole(place: Path) -> None:
    anonymized("o.jsonl", place / "f", Sizes(parts=1))
    assert run_command(["anonymize", "t.csv", "-p", "policy.yaml", "-o", "w.jsonl", "-a", "mondrian"]) == 0
    assert Path("o.jsonl").read_bytes() == Path("w.jsonl").read_bytes()


def test_measures_of_parts(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One part measures what the whole does; several have figures of all rows."""
    one = anonymized("o.jsonl", place / "f", Sizes(parts=1)).summary()["measures"]
    command = ["anonymize", "t.csv", "-p", "policy.yaml", "-o", "w.jsonl", "-a", "mondrian", "--json"]
    assert run_command([*command, "--html", "w.html"]) == 0
    whole = json.loads(capsys.readouterr().out)["measures"]
    assert one == whole
    assert "KL divergence" in Path("w.html").read_text()
    run = anonymized("p.jsonl", place / "g", SMALL)
    found, sizes = run.summary()["measures"], Counter()
    for line in Path("p.jsonl").read_text().splitlines():
        sizes[json.loads(line)["_anon"]["group"]] += 1
    assert found["discernibility"] == round(sum(size**2 for size in sizes.values()) / 1500, 5)
    assert found["average_class_size"] == round(1500 / len(sizes) / 4, 5)
    assert set(found["columns"]) == {"age", "zip"}


def test_a_page_about_parts(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a page tells of parts is told of the published records; risk before is that of the table in one piece."""
    run = anonymized("o.jsonl", place / "a", told=classes_told, algorithm="sweep")
    found = result_told(run.tally, run.told)
    groups = Counter(json.loads(line)["_anon"]["group"] for line in Path("o.jsonl").read_text().splitlines())
    assert found.sizes == dict(sorted(Counter(groups.values()).items()))
    whole = Anonymization(run.schema, "sweep")
    whole.read(read_parts(Path("t.csv")), lambda rejected: None, lambda share: None)
    whole.divide(lambda share: None)
    whole.write(writer_for(Path("w.jsonl"), BytesIO()), lambda share: None)
    assert whole.tally.published == found.published
    before = result_of(whole.tally, whole.groups).before
    assert asdict(found.before) == pytest.approx(asdict(before))
    command = ["anonymize", "t.csv", "-p", "policy.yaml", "-a", "mondrian", "--html"]
    assert run_command([*command, "parts.html", "-o", "p.csv", "--parts", "auto"]) == 0
    assert run_command([*command, "whole.html", "-o", "q.csv"]) == 0
    pages = [Path(name).read_text() for name in ("parts.html", "whole.html")]
    tables = [page[page.index("Measures of the papers") : page.index("Provenance")] for page in pages]
    assert tables[0] == tables[1]
    assert run_command([*command, "parts.html", "-o", "r.csv", "--parts", "auto"]) == 1  # it is there


def test_facts_of_the_whole(place: Path) -> None:
    """A distribution is estimated from all rows: no part alone has seen enough of them."""
    Path("policy.yaml").write_text(POLICY + T_CLOSE)
    run = anonymized("o.jsonl", place / "f")
    assert run.tally.published > 1400
    assert run_command(["audit", "o.jsonl", "-p", "policy.yaml", "--raw", "t.csv"]) == 0


def test_rows_without_a_place_go_to_the_neighbour(place: Path) -> None:
    """Everybody under 20 has one illness, so that a part of theirs cannot be published by itself."""
    Path("policy.yaml").write_text(POLICY + "  - {model: l_diversity, attribute: illness, l: 2}\n")
    with Path("t.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["patient", "age", "zip", "illness", "ward"])
        for i in range(800):
            young = i % 2
            rows.writerow([f"p{i}", 5 if young else 60 + i % 20, "111", "one" if young else f"i{i % 7}", f"w{i}"])
    run = anonymized("o.jsonl", place / "f", Sizes(parts=2, least=150, sample=500))
    assert run.counts == [400, 400]
    assert (run.tally.published, run.tally.suppressed) == (800, 0)
    assert run_command(["audit", "o.jsonl", "-p", "policy.yaml", "--raw", "t.csv"]) == 0


def test_where_a_row_falls_does_not_depend_on_values(place: Path) -> None:
    schema = Schema.of(stream_anon.load_policy(Path("policy.yaml")))
    rows = np.random.default_rng(0).integers(0, 90, (1000, 2))
    tree = grow(rows, schema, 6, 50)
    parts = tree.parts_of(rows)
    assert np.bincount(parts).min() >= 50
    assert len(np.bincount(parts)) == 6
    assert tree == grow(rows.copy(), schema, 6, 50)
    assert isinstance(tree, CutTree)


def test_rows_that_are_all_alike_are_one_part(place: Path) -> None:
    schema = Schema.of(stream_anon.load_policy(Path("policy.yaml")))
    assert grow(np.full((500, 2), 7), schema, 4, 10).order == (0,)
    assert wanted(0, None) == 1
    assert len(Sampler().sample(2)) == 0


def test_an_interrupted_run_goes_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is finished is not done again; rows are not read again; the output is what it would have been."""
    anonymized("o.jsonl", place / "f")
    write, asked = module.write_fragment, []

    def failing(fragment: Path, *more: Any) -> None:
        if fragment.name == "2.out":
            raise OSError("no space left")
        write(fragment, *more)

    monkeypatch.setattr(module, "write_fragment", failing)
    with pytest.raises(OSError, match="no space"):
        anonymized("o2.jsonl", place / "g")
    assert not Path("o2.jsonl").exists()
    finished = {path.name for path in (place / "g").glob("*.done")}
    assert {"read.done", "1.done", "3.done"} <= finished
    monkeypatch.setattr(module, "write_fragment", write)
    before = (place / "g" / "1.done").stat().st_mtime_ns
    monkeypatch.setattr(Encoder, "encode", lambda *_: asked.append(1))
    anonymized("o2.jsonl", place / "g")
    assert Path("o.jsonl").read_bytes() == Path("o2.jsonl").read_bytes()
    assert (place / "g" / "1.done").stat().st_mtime_ns == before
    assert not asked


def test_the_folder_is_private_and_goes(place: Path) -> None:
    with private_folder(place / "o.csv") as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "x").touch()
    assert not folder.exists()
    with pytest.raises(KeyError), private_folder(place / "o.csv"):
        raise KeyError
    assert not list(place.glob(".o.csv*"))
    (place / "open").mkdir(mode=0o755)
    os.chmod(place / "open", 0o755)
    with pytest.raises(SpillError, match="chmod 700"), kept_folder(place / "open", "a"):
        pass
    with pytest.raises(KeyError), kept_folder(place / "own", "a"):
        raise KeyError
    assert (place / "own").exists()
    with pytest.raises(SpillError, match="another table"), kept_folder(place / "own", "b"):
        pass
    with kept_folder(place / "own", "a"):
        pass
    assert not (place / "own").exists()


@pytest.mark.parametrize(
    "values",
    [
        [2**70, -0.0, True, None, "\u00e9\n", 1.5],
        ["a", None, "a", "\u00e9\n", "a", "a"],  # text that repeats
        [1, True, 1.0, 1, True, 1],  # equal, and not the same
        [None] * 6,
    ],
)
def test_spilled_rows_come_back_as_they_were(place: Path, values: list[Any]) -> None:
    schema = Schema.of(stream_anon.load_policy(Path("policy.yaml")))
    encoder = Encoder(schema)
    records = [
        {"patient": f"p{i}", "age": 20 + 20 * i, "zip": "123", "illness": "flu", "ward": value}
        for i, value in enumerate(values)
    ]
    ref = np.stack([np.zeros(6, dtype=np.int64), np.arange(6)], axis=1)
    rows = encoder.encode([json.dumps(record).encode() for record in records], ref, np.zeros(6)).batch
    spill = Spill(place)
    spill.add("x", rows)
    spill.close()
    [back] = spill.read("x")
    for name in ("qi", "sensitive", "guard", "psf", "subject", "ref"):
        assert np.array_equal(getattr(back, name), getattr(rows, name))
    assert list(map(repr, back.values.ravel())) == list(map(repr, rows.values.ravel()))


def test_the_command(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["anonymize", "t.csv", "-p", "policy.yaml", "-a", "mondrian", "--parts", "auto"]
    assert run_command([*command, "-o", "o.csv", "--json", "--workers", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["published"], found["parts"], found["rejected"]) == (1500, [1500], {"missing": 1})
    assert run_command([*command, "-o", "p.csv", "--spill", "kept"]) == 0
    assert Path("o.csv").read_bytes() == Path("p.csv").read_bytes()
    assert sorted(path.name for path in place.iterdir()) == ["o.csv", "p.csv", "policy.yaml", "t.csv"]
    assert run_command([*command[:-1], "none", "-o", "q.csv"]) == 2
    assert run_command([*command, "-o", "q.csv", "--max-rejected", "0"]) == 5
    assert not [path for path in place.iterdir() if path.name.startswith(".")]
