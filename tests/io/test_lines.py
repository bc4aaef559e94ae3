from __future__ import annotations

import contextlib
import os
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_anon.core.decode import Payload, Reject
from stream_anon.formats.text.lines import CHUNK, InputError, Lines

Read = list[tuple[int, Payload]]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


def everything(lines: Lines) -> Read:
    read: Read = []
    while not lines.ended:
        read += lines.read(10)
    return read


TEXTS: list[tuple[str, bytes, Read]] = [
    # remark, input, lines with their numbers; a line may have 8 bytes
    ("nothing", b"", []),
    ("one line", b"{}\n", [(1, b"{}")]),
    ("the last newline is missing", b"{}\n[]", [(1, b"{}"), (2, b"[]")]),
    ("blank lines count", b"\n  \n{}\n\n", [(3, b"{}")]),
    ("a carriage return is JSON's own white space", b"{}\r\n", [(1, b"{}\r")]),
    ("a byte order mark at the start", b"\xef\xbb\xbf{}\n", [(1, b"{}")]),
    ("a byte order mark later on is data", b"{}\n\xef\xbb\xbf{}\n", [(1, b"{}"), (2, b"\xef\xbb\xbf{}")]),
    ("as long as allowed", b"12345678\n", [(1, b"12345678")]),
    ("too long", b"123456789\n{}\n", [(1, Reject.TOO_LARGE), (2, b"{}")]),
    ("too long, and the last", b"{}\n123456789", [(1, b"{}"), (2, Reject.TOO_LARGE)]),
    ("two too long ones", b"123456789\n123456789\n", [(1, Reject.TOO_LARGE), (2, Reject.TOO_LARGE)]),
    ("too long, all blank", b" " * 9 + b"\n{}", [(1, Reject.TOO_LARGE), (2, b"{}")]),
    ("not text", b"\xff\x00\n", [(1, b"\xff\x00")]),
]


@pytest.mark.parametrize(("text", "expected"), [t[1:] for t in TEXTS], ids=[t[0] for t in TEXTS])
@pytest.mark.parametrize("step", [1, 3, 1000])
def test_lines(text: bytes, expected: Read, step: int, pipe: tuple[int, int]) -> None:
    lines, read = Lines(pipe[0], limit=8), []
    for start in range(0, len(text), step):
        os.write(pipe[1], text[start : start + step])
        read += lines.read(10)
    os.close(pipe[1])
    assert read + everything(lines) == expected


@pytest.mark.parametrize(("text", "expected"), [t[1:] for t in TEXTS], ids=[t[0] for t in TEXTS])
def test_a_file_is_read_like_a_pipe(text: bytes, expected: Read, tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(text)
    with (tmp_path / "lines").open("rb") as file:
        assert everything(Lines(file.fileno(), limit=8)) == expected


def test_nothing_comes_without_waiting_for_ever(pipe: tuple[int, int]) -> None:
    lines = Lines(pipe[0])
    assert lines.read(0) == []
    os.write(pipe[1], b'{"a":')
    assert lines.read(10) == []
    assert not lines.ended
    os.write(pipe[1], b"1}\n")
    assert lines.read(10) == [(1, b'{"a":1}')]


def test_a_huge_line_is_not_held(pipe: tuple[int, int]) -> None:
    piece, pieces = b"x" * CHUNK, 200

    def write() -> None:
        with open(pipe[1], "wb", closefd=False) as file:
            for _ in range(pieces):
                file.write(piece)
            file.write(b"\n{}\n")
        os.close(pipe[1])

    writer = threading.Thread(target=write)
    tracemalloc.start()
    try:
        writer.start()
        read = everything(Lines(pipe[0]))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        writer.join()
    assert read == [(1, Reject.TOO_LARGE), (2, b"{}")]
    assert peak < 4 << 20 < pieces * CHUNK


def test_an_input_that_breaks_is_no_end(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(InputError, match="the input cannot be read: Is a directory"):
        Lines(folder).read(0)
    os.close(folder)
