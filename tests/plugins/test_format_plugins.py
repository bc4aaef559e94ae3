"""A file format of another distribution works wherever one of this package does."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributions import commands, install

from stream_anon.auditor.reading.formats import JSON
from stream_anon.auditor.reading.formats import known_formats as read_by_the_auditor
from stream_anon.formats.format import Format, Part, TableError
from stream_anon.formats.tables import known_formats

FORMAT = '''
import json

import numpy as np

from stream_anon.core.decode import Reject
from stream_anon.formats.format import Format, Part, TableError


class Writer:
    """One record a line, fields joined by bars."""

    def __init__(self, file):
        self._file, self._names = file, None

    def write(self, groups):
        for group in groups:
            for record in group.records():
                told = record.pop("_anon")
                cells = {**record, **{f"_anon.{name}": value for name, value in told.items()}}
                if self._names is None:
                    self._names = list(cells)
                    self._file.write("|".join(self._names).encode() + b"\\n")
                self._file.write("|".join(map(json.dumps, cells.values())).encode() + b"\\n")

    def close(self):
        pass


class Bars(Format):
    """Lines of cells between bars; the first line names the columns."""

    name = "bars"
    suffixes = (".bars",)
    text = True

    def read(self, path, at_once):
        first, *lines = path.read_text("utf-8").splitlines()
        names = first.split("|")
        for start in range(0, len(lines), at_once):
            cells = [line.split("|") for line in lines[start : start + at_once]]
            rows = [dict(zip(names, row)) if len(row) == len(names) else Reject.CELL_COUNT for row in cells]
            yield Part(start + 1, np.arange(start + 2, start + 2 + len(rows)), rows, (start + len(rows)) / len(lines))

    def writer(self, file, quote_formulas=True):
        return Writer(file)
'''
CHECK = '''
import json

from stream_anon.auditor.reading.formats import TableFormat


class Bars(TableFormat):
    """Lines of cells between bars."""

    suffixes = (".bars",)

    def columns(self, path):
        first, *lines = path.read_text("utf-8").splitlines()
        rows = [line.split("|") for line in lines]
        raw = not first.startswith("age|ill|_anon")
        rows = [row for row in rows if len(row) == len(first.split("|"))]
        read = (lambda cell: cell) if raw else json.loads
        yield {name: [read(row[i]) for row in rows] for i, name in enumerate(first.split("|"))}, []
'''
POLICY = """
version: 1
name: ages
attributes:
  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 100], snap: [5, 10]}}
  ill: {role: sensitive}
privacy:
  - {model: k_anonymity, k: 4}
"""


def test_a_format_of_another_distribution(tmp_path: Path) -> None:
    install(tmp_path, "bars", FORMAT, "[stream_anon.formats]\nbars = bars:Bars\n")
    install(tmp_path, "checking", CHECK, "[stream_anon.auditor_formats]\nbars = checking:Bars\n")
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    lines = ["age|ill", *(f"{i * 7 % 90}|{'abc'[i % 3]}" for i in range(120)), "broken"]
    (tmp_path / "in.bars").write_text("\n".join(lines) + "\n", encoding="utf-8")
    check, init, anonymize, preview, audit = commands(
        tmp_path,
        ["check", "policy.yaml", "--data", "in.bars"],
        ["init", "in.bars", "-o", "proposed.yaml"],
        ["anonymize", "-p", "policy.yaml", "in.bars", "-o", "out.bars", "--json"],
        ["preview", "in.bars", "-p", "policy.yaml", "--json"],
        ["audit", "out.bars", "-p", "policy.yaml", "--raw", "in.bars", "--json"],
    )
    assert [code for code, _, _ in (check, init, anonymize, preview, audit)] == [0] * 5
    result = json.loads(anonymize[1])
    assert (result["published"], result["rejected"]) == (120, {"cell_count": 1})
    assert "type: integer" in (tmp_path / "proposed.yaml").read_text(encoding="utf-8")
    audited = json.loads(audit[1])
    assert (audited["records"], audited["raw"]["matched"]) == (120, 120)


def test_a_format_may_only_be_read(tmp_path: Path) -> None:
    class Poems(Format):
        name = "poem"
        suffixes = (".poem",)

        def read(self, path: Path, at_once: int) -> Iterator[Part]:
            yield from ()

    with pytest.raises(TableError, match="poem files can be read, not written"):
        Poems().writer(io.BytesIO())


def test_the_auditor_reads_every_format() -> None:
    assert {*read_by_the_auditor(), *JSON} == set(known_formats())
    assert len(known_formats()) >= 6
