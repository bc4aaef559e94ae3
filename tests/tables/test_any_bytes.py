"""Whatever bytes a table has: each line is in one record or told, both readers agree, and little is held meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stream_anon.auditor.raw.original import raw_columns
from stream_anon.auditor.reading.formats.csv_rows import CsvTable, NoTable
from stream_anon.core.decode import Decoder, LineCount, Reject
from stream_anon.errors import StreamAnonError
from stream_anon.formats import csv_records
from stream_anon.formats.csv_records import MOST_LINES, CsvLines, CsvRecords
from stream_anon.formats.tables import read_parts
from stream_anon.formats.text.lines import Lines

PIECES = [b"a", b"b", b"1", b",", b",", b'"', b'"', b'""', b"\n", b"\n", b"\r\n", b"\r", b" ", b";", b"\t", b"\xff"]
PIECES += ["é".encode(), b"\x00", b"=1"]
MESSES = st.lists(st.sampled_from(PIECES), max_size=120).map(b"".join)
TABLES = st.tuples(st.sampled_from([b"a,b,c,d\n", b'a;"b\nc";d\r\n', b"a\n", b"\n\na,b\n"]), MESSES).map(b"".join)
ANY = st.binary(max_size=400)
Verdicts = list[tuple[int, Any]]


def as_told(row: Any) -> Any:
    return list(row.values()) if isinstance(row, dict) else str(row) if isinstance(row, Reject) else row


def read_in_pieces(data: bytes, sizes: Sequence[int]) -> tuple[Verdicts, LineCount]:
    """What `pipe --csv` reads when the bytes arrive so many at a time."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    lines = CsvLines(Lines(reading, keep_blank=True))
    found: Verdicts = []
    try:
        at = 0
        for size in [*sizes, len(data)]:
            os.write(writing, data[at : at + size])
            at += size
            found += lines.read(0)
        os.close(writing)
        while not lines.ended:
            found += lines.read(0)
    finally:
        os.close(reading)
    return [(number, as_told(row)) for number, row in found], lines.count


def read_as_file(data: bytes, suffix: str, at_once: int = 7) -> tuple[Verdicts, LineCount]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"t{suffix}"
        path.write_bytes(data)
        parts = list(read_parts(path, at_once))
    found = [(int(n), as_told(row)) for part in parts for n, row in zip(part.numbers, part.payloads, strict=True)]
    assert parts[-1].lines is not None
    assert [part.first for part in parts] == [1 + sum(map(len, parts[:i])) for i in range(len(parts))]
    return found, parts[-1].lines


def read_by_the_auditor(data: bytes) -> Verdicts:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(data)
        with path.open("rb") as file:
            return list(CsvTable(path, file))


def lines_in(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n") and data != b"")


@settings(max_examples=600, deadline=None)
@given(TABLES, st.lists(st.integers(1, 40), max_size=6))
@example(b"year,zip,name,ill\n1980,02139,Smith, John,flu\n", [])
@example(b'a,b\n1,"2\n3,4\n5,6\n', [3])
@example(b'a,b\n1,"2"x\n3,"4\n5"\n', [])
@example(b"\xff,b\n", [])
@example(b'a,b,c\n1,"2,3\n4,5",6\n', [])
@example(b'a,b,c\n"1,2,3\n4,5,6\n7",8,9\n', [4])
@example(b'a,b\n1,"2\n\n3,4"\n', [])
def test_both_readers_agree_on_csv(data: bytes, sizes: list[int]) -> None:
    try:
        expected = read_by_the_auditor(data)
    except NoTable:
        with pytest.raises(StreamAnonError):
            read_in_pieces(data, sizes)
        with pytest.raises(StreamAnonError):
            read_as_file(data, ".csv")
        return
    for found, count in (read_in_pieces(data, sizes), read_as_file(data, ".csv")):
        assert found == expected
        assert count.records() == len(found), "each record is published or rejected, and counted once"
        assert count.read == lines_in(data), "and each physical line belongs to something"
        assert len({number for number, _ in found}) == len(found)


@settings(max_examples=300, deadline=None)
@given(st.one_of(ANY, MESSES, st.lists(st.sampled_from([b'{"a": 1}', b"[1]", b"{", b"", b"\x00\x01"])).map(b"\n".join)))
@example(b"null\n")
def test_both_readers_agree_on_json_lines(data: bytes) -> None:
    found, count = read_as_file(data, ".jsonl")
    assert count.records() == len(found)
    assert count.read == lines_in(data)
    decoder = Decoder({})
    refused = [(number, refusal_of(decoder, row)) for number, row in found]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        path.write_bytes(data)
        bad = [(one.line, one.code) for _, some in raw_columns(path) for one in some]
    assert [(number, code) for number, code in refused if code] == bad


def refusal_of(decoder: Decoder, row: Any) -> str:
    found = decoder.decode(row)
    return str(found[0]) if isinstance(found, tuple) else ""


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.text(max_size=8).filter(lambda s: "\x00" not in s), min_size=3, max_size=3), max_size=20))
def test_what_a_writer_quotes_is_read_as_it_was(rows: list[list[str]]) -> None:
    """The other side: nothing that is written by the rules is refused or changed."""
    text = "\n".join(
        ",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row) for row in [["a", "b", "c"], *rows]
    )
    found, _ = read_as_file(text.encode("utf-8", "surrogatepass"), ".csv")
    if all(is_text(cell) and not ("\n" in cell and "," in cell) for row in rows for cell in row):
        assert [row for _, row in found] == rows


def is_text(cell: str) -> bool:
    return cell.isascii() or cell.encode("utf-8", "replace").decode() == cell


def test_an_open_quote_costs_one_row() -> None:
    good = b"1,2,3,4\n"
    data = b"a,b,c,d\n" + good * 100 + b'1,"2,3,4\n' + good * 20_000
    found, count = read_as_file(data, ".csv", 10_000)
    assert [row for row in found if isinstance(row[1], str)] == [(102, "not_csv")]
    assert len(found) == count.records() == 20_101


def test_a_quote_is_followed_for_a_bounded_stretch() -> None:
    """A record of as many lines as are allowed is read; one more, or too many bytes, and its first line is refused."""
    for more, expected in ((0, 1), (1, MOST_LINES + 1)):
        data = b'a\n"' + b"x\n" * (MOST_LINES - 1 + more) + b'"\n'
        assert len(read_as_file(data, ".csv")[0]) == expected
    long = b"y" * 100_000 + b"\n"
    assert len(read_as_file(b'a\n"' + long * 20, ".csv")[0]) == 20


def test_little_is_held_while_a_quote_is_open() -> None:
    records = CsvRecords("t", limit=1000)
    records.feed([(1, b"a,b")], ended=False)
    held = 0
    for number in range(2, 5_000):
        records.feed([(number, b'"' + b"z" * 50)], ended=False)
        held = max(held, sum(len(text) for _, text in records._open if isinstance(text, str)))
    assert held <= 1000 + 2 * 52
    assert len(records._open) <= csv_records.MOST_LINES


def test_an_overlong_line_is_never_held(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with path.open("wb") as file:
        for _ in range(64):
            file.write(b" " * (1 << 20))
        file.write(b'{"a": 1}\n{"a": 2}\n')
    [(first, bad), (second, good)] = read_all(path)
    assert (first, bad, second) == (1, Reject.TOO_LARGE, 2)
    assert msgspec.json.decode(good) == {"a": 2}


def read_all(path: Path) -> Iterable[tuple[int, Any]]:
    return [(int(n), row) for part in read_parts(path) for n, row in zip(part.numbers, part.payloads, strict=True)]


STRAY = [  # a quote too few and one too many make one row of two or three
    b'"p1,20,flu,a\np2",30,ulcer,b\n',
    b'p1,20,"flu,a\np2,30,ulcer",b\n',
    b'p1,20,flu,"a\np2,30,ulcer,b"\n',
    b'p1,20,flu,"a\np2,30,ulcer,b\np3,40,flu,c"\n',
    b'p1,20,flu,"a\r\np2,30,""ulcer,b"\n',
]


@pytest.mark.parametrize("text", STRAY)
def test_a_cell_does_not_hold_other_rows(text: bytes) -> None:
    """It would be published whole, with the names of others in it: its first line is refused, the others are read."""
    data = b"who,age,ill,ward\n" + text + b"p9,50,flu,d\n"
    found, count = read_as_file(data, ".csv")
    assert found[0] == (2, "not_csv")
    assert found == read_by_the_auditor(data) == read_in_pieces(data, [30, 9])[0]
    assert count.records() == len(found) == data.count(b"\n") - 1
    assert not any("\n" in cell for _, row in found if isinstance(row, list) for cell in row)


@pytest.mark.parametrize("note", ["two\nlines, and more", "a, b, c, d\ne", "x\n\n1,2,3", "1,2,3\nx", "one\n1,2,3\ntwo"])
def test_texts_over_several_lines_are_read(note: str) -> None:
    data = f'who,age,ill,ward\np1,20,flu,"{note}"\n'.encode()
    assert read_as_file(data, ".csv")[0] == read_by_the_auditor(data) == [(2, ["p1", "20", "flu", note])]
