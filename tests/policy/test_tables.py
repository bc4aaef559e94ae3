from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stream_anon.core.privacy.alpha_k import read_alphas
from stream_anon.core.privacy.lc_anonymity import ValueProtection, read_protections
from stream_anon.core.privacy.t_closeness import read_weights
from stream_anon.errors import PolicyError
from stream_anon.grammar.tables import read_cells

Reader = Callable[[Path, str], Any]

BROKEN: list[tuple[str, Reader, bytes, str, int, int]] = [
    # remark, reader, content, code, line, column
    ("no header", read_protections, b"Flu;2;0.5\n", "wrong-header", 1, 1),
    ("the header of another table", read_alphas, b"value;weight\nFlu;1\n", "wrong-header", 1, 1),
    ("a cell too few", read_protections, b"value;l;sensitivity\nFlu;2;0\nHIV;3\n", "wrong-cell-count", 3, 5),
    ("a blank line inside", read_alphas, b"value;alpha\n\nFlu;0.5\n", "wrong-cell-count", 2, 1),
    ("a decimal comma", read_alphas, b"value;alpha\nFlu;0,5\n", "not-a-number", 2, 5),
    ("not a number at all", read_weights, b"value;weight\nFlu;nan\n", "not-a-number", 2, 5),
    ("l is not whole", read_protections, b"value;l;sensitivity\nFlu;2.5;0\n", "out-of-range", 2, 5),
    ("sensitivity above one", read_protections, b"value;l;sensitivity\nFlu;2;7\n", "out-of-range", 2, 7),
    ("alpha of zero", read_alphas, b"value;alpha\nFlu;0\n", "out-of-range", 2, 5),
    ("a negative weight", read_weights, b"value;weight\nFlu;1\nHIV;-1\n", "out-of-range", 3, 5),
    ("nothing has a weight", read_weights, b"value;weight\nFlu;0\n", "out-of-range", 0, 0),
    ("a value twice", read_weights, b"value;weight\nFlu;1\nHIV;1\nFlu;2\n", "duplicate-value", 4, 1),
    ("an empty file", read_weights, b"", "empty-file", 0, 0),
    ("only blank lines", read_weights, b"\n \r\n", "empty-file", 0, 0),
    ("only a header", read_weights, b"value;weight\n", "empty-file", 1, 1),
    ("Latin-1", read_weights, b"value;weight\nGr\xfcn;1\n", "not-utf8", 2, 3),
    ("UTF-16", read_weights, "value;weight\n".encode("utf-16"), "not-utf8", 1, 1),
    ("a NUL", read_weights, b"value;weight\nA\0;1\n", "nul-character", 2, 2),
    ("a quote left open", read_weights, b'value;weight\n"Flu;1\n', "bad-quote", 2, 1),
    ("text after a quote", read_weights, b'value;weight\n"Flu"x;1\n', "bad-quote", 2, 6),
]


@pytest.mark.parametrize(
    ("reader", "content", "code", "line", "column"), [c[1:] for c in BROKEN], ids=[c[0] for c in BROKEN]
)
def test_broken_table(tmp_path: Path, reader: Reader, content: bytes, code: str, line: int, column: int) -> None:
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(PolicyError) as caught:
        reader(tmp_path / "table.csv", "table.csv")
    [finding] = caught.value.diagnostics
    assert (finding.code, finding.file, finding.line, finding.column) == (code, "table.csv", line, column)


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("value;alpha\nA;x\nB;2\nC\n")
    with pytest.raises(PolicyError) as caught:
        read_alphas(tmp_path / "t.csv", "t.csv")
    assert [d.line for d in caught.value.diagnostics] == [2, 3, 4]


@pytest.mark.parametrize(
    ("name", "code"), [("none.csv", "missing-file"), (".", "not-a-file"), ("a\0b", "unreadable-file")]
)
def test_what_is_no_file(tmp_path: Path, name: str, code: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read_cells(tmp_path / name, name, ";")
    assert [d.code for d in caught.value.diagnostics] == [code]


def test_good_tables(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes(b'\xef\xbb\xbfvalue;l;sensitivity\r\nFlu;2;0.5\r\n"a;b";3;1\r\n\r\n')
    assert read_protections(tmp_path / "p.csv", "p.csv") == {
        "Flu": ValueProtection(l=2, sensitivity=0.5),
        "a;b": ValueProtection(l=3, sensitivity=1.0),
    }
    (tmp_path / "a.csv").write_text("value;alpha\nFlu;0.5\n")
    assert read_alphas(tmp_path / "a.csv", "a.csv") == {"Flu": 0.5}
    (tmp_path / "w.csv").write_text("value;weight\nFlu;3\nHIV;0")
    assert read_weights(tmp_path / "w.csv", "w.csv") == {"Flu": 3.0, "HIV": 0.0}


def test_cells_know_their_columns(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text('a,"b ""x""",\n')
    [(line, cells)] = read_cells(tmp_path / "c.csv", "c.csv", ",")
    assert line == 1
    assert [(cell.text, cell.column, cell.width) for cell in cells] == [("a", 1, 1), ('b "x"', 3, 9), ("", 13, 1)]
