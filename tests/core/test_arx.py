"""Hierarchies from CSV files: good ones are read, broken ones refused with the place and the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream_anon.cli import run_command as run
from stream_anon.core.hierarchy import Tree
from stream_anon.core.hierarchy.arx import LEVELS, read_tree
from stream_anon.errors import PolicyError

GOOD = "Oslo;Norway;Europe;*\nBergen;Norway;Europe;*\nLima;Peru;America;*\n"

POLICY = """
version: 1
name: places
attributes:
  city: {role: quasi_identifier, type: category, hierarchy: {kind: csv, path: city.csv}}
privacy:
  - {model: k_anonymity, k: 2}
"""

BROKEN = [
    # remark, content, code, line, column, part of the message, part of the hint
    ("one column", b"Oslo\nLima\n", "one-column", 1, 1, "two columns", "delimiter"),
    ("another delimiter", b"Oslo,Norway,*\nLima,Peru,*\n", "one-column", 1, 1, "two columns", "delimiter"),
    ("a cell too few", b"Oslo;Norway;*\nLima;*\n", "uneven-lines", 2, 6, "2 columns, the first line has 3", ""),
    ("a cell too many", b"Oslo;*\nLima;Peru;*\n", "uneven-lines", 2, 11, "3 columns, the first line has 2", ""),
    ("an empty label", b"Oslo;Norway;*\nLima; ;*\n", "empty-cell", 2, 6, "empty", ""),
    ("a leaf twice", b"Oslo;Norway;*\nLima;Peru;*\nOslo;Norway;*\n", "duplicate-leaf", 3, 1, "on line 1", ""),
    (
        "a label below two parents",
        b"Oslo;Norway;Europe;*\nLima;Peru;America;*\nBergen;Norway;Eurpe;*\n",
        "two-parents",
        3,
        15,
        '"Norway" is below "Eurpe" here and below "Europe" on line 1',
        'did you mean "Europe"?',
    ),
    ("two roots", b"Oslo;Norway;*\nLima;Peru;all\n", "two-roots", 2, 11, "the same on every line", 'write "*"'),
    ("a quote left open", b'Oslo;*\n"Lima;*\n', "bad-quote", 2, 1, "not closed", "close it"),
    ("text after a quote", b'Oslo;*\n"Li"ma;*\n', "bad-quote", 2, 5, "after a closing quote", "twice"),
    ("Latin-1", b"Oslo;*\nM\xe1laga;*\n", "not-utf8", 2, 2, "UTF-8", "UTF-8"),
    ("a NUL", b"Oslo;*\nLi\0ma;*\n", "nul-character", 2, 3, "NUL", ""),
    ("nothing", b"", "empty-file", 0, 0, "empty", ""),
    ("only blank lines", b"\n\r\n", "empty-file", 0, 0, "empty", ""),
    ("far too many columns", b";".join([b"a"] * 5000), "too-many-columns", 1, 2 * LEVELS + 1, "5000", ""),
]
TABLE = pytest.mark.parametrize(
    ("content", "code", "line", "column", "message", "hint"), [c[1:] for c in BROKEN], ids=[c[0] for c in BROKEN]
)


@TABLE
def test_broken_files(
    tmp_path: Path, content: bytes, code: str, line: int, column: int, message: str, hint: str
) -> None:
    (tmp_path / "city.csv").write_bytes(content)
    with pytest.raises(PolicyError) as caught:
        read_tree(tmp_path / "city.csv", "city.csv")
    [found] = caught.value.diagnostics
    assert (found.code, found.file, found.line, found.column) == (code, "city.csv", line, column)
    assert message in found.message
    assert hint in found.hint


@TABLE
def test_broken_files_end_the_check(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: bytes,
    code: str,
    line: int,
    column: int,
    message: str,
    hint: str,
) -> None:
    (tmp_path / "city.csv").write_bytes(content)
    (tmp_path / "policy.yaml").write_text(POLICY)
    assert run(["check", str(tmp_path / "policy.yaml")]) == PolicyError.exit_code == 3
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    place = f"city.csv:{line}:{column}: " if line else "city.csv: "
    assert f"{place}error {code}: " in err
    assert message in err
    assert hint in err


def test_a_file_that_is_not_there_is_shown_where_it_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    assert run(["check", str(tmp_path / "policy.yaml")]) == 3
    err = capsys.readouterr().err
    assert "policy.yaml:5:" in err
    assert "error missing-file" in err


def test_a_good_file_passes_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "city.csv").write_text(GOOD)
    (tmp_path / "policy.yaml").write_text(POLICY)
    assert run(["check", str(tmp_path / "policy.yaml")]) == 0
    assert "ok" in capsys.readouterr().err


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "city.csv").write_text("Oslo;Norway;*\nLima;*\nOslo;Norway;*\nRome;;*\n")
    with pytest.raises(PolicyError) as caught:
        read_tree(tmp_path / "city.csv", "city.csv")
    assert [(d.line, d.code) for d in caught.value.diagnostics] == [
        (2, "uneven-lines"),
        (3, "duplicate-leaf"),
        (4, "empty-cell"),
    ]


FORMS = [
    # remark, content, delimiter
    ("as ARX writes it", GOOD.encode(), ";"),
    ("lines of Windows", GOOD.replace("\n", "\r\n").encode(), ";"),
    ("a byte order mark", b"\xef\xbb\xbf" + GOOD.encode(), ";"),
    ("no end of the last line", GOOD.encode().rstrip(), ";"),
    ("blank lines at the end", GOOD.encode() + b"\n\r\n", ";"),
    ("quotes around every cell", "\n".join('"' + '";"'.join(x.split(";")) + '"' for x in GOOD.split()).encode(), ";"),
    ("commas", GOOD.replace(";", ",").encode(), ","),
    ("tabs", GOOD.replace(";", "\t").encode(), "\t"),
]


@pytest.mark.parametrize(("content", "delimiter"), [f[1:] for f in FORMS], ids=[f[0] for f in FORMS])
def test_forms_of_the_same_tree(tmp_path: Path, content: bytes, delimiter: str) -> None:
    (tmp_path / "city.csv").write_bytes(content)
    tree = Tree(read_tree(tmp_path / "city.csv", "city.csv", delimiter))
    assert tree.labels[: tree.size] == ["Oslo", "Bergen", "Lima"]
    labels = [tree.label(low, high) for low, high in [(0, 0), (0, 1), (2, 2), (0, 2)]]
    assert labels == ["Oslo", "Norway", "Lima", "*"]


def test_quoted_cells_hold_delimiters_and_quotes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('"a;b";*\n"say ""hi""";*\n')
    tree = Tree(read_tree(tmp_path / "t.csv", "t.csv"))
    assert tree.labels == ["a;b", 'say "hi"', "*"]


def test_a_name_may_return_on_another_level(tmp_path: Path) -> None:
    """A label stands for the node of its level: Luxembourg the city, the country and a country's only city."""
    (tmp_path / "t.csv").write_text("Luxembourg;Luxembourg;*\nBonn;Germany;*\nBerlin;Germany;*\n")
    tree = Tree(read_tree(tmp_path / "t.csv", "t.csv"))
    codes, trouble = tree.encode(["Luxembourg", "Bonn"])
    assert trouble is None
    assert tree.label(int(codes[0]), int(codes[0])) == "Luxembourg"
    assert not tree.contains("Germany", "Luxembourg")


def test_lines_of_one_branch_may_stand_apart(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Bonn;Germany;*\nLima;Peru;*\nBerlin;Germany;*\n")
    tree = Tree(read_tree(tmp_path / "t.csv", "t.csv"))
    codes, _ = tree.encode(["Bonn", "Berlin"])
    assert tree.label(int(codes.min()), int(codes.max())) == "Germany"


def test_ten_thousand_lines(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("".join(f"{i:05d};{i // 10:04d}*;{i // 100:03d}**;*\n" for i in range(10_000)))
    tree = Tree(read_tree(tmp_path / "t.csv", "t.csv"))
    assert (tree.size, tree.label(120, 129), tree.label(120, 199)) == (10_000, "0012*", "001**")
