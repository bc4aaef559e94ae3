"""Output of commands: findings on stderr, data and JSON on stdout; never a line that may hold a secret."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from stream_anon.errors import Diagnostic, Severity

_COLOURS = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow"}
_SECRET = re.compile(r"secret|passw|token|jaas|credential|\bkey\b|\.key", re.IGNORECASE)

_WINDOW = 110
"""Characters of a source line that are shown; a one-line policy would fill the screen."""


def talk() -> Console:
    """Return a console on stderr: no colour unless it is a terminal, none at all if NO_COLOR is set."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(message: str, style: str = "") -> None:
    """Print one line on stderr."""
    talk().print(Text(message, style=style))


def quoted(path: Path | str) -> str:
    """Quote a file's name as one word of a shell, for the commands that are suggested."""
    return shlex.quote(str(path))


def table(path: Path | str, encoding: str | None) -> str:
    """Return a table as suggested commands name it: its file, and the encoding that it needs."""
    return quoted(path) + (f" --encoding {encoding}" if encoding else "")


def check_of(policy: Path | str, data: Path | str, encoding: str | None) -> str:
    """Return the command that checks a policy against data."""
    return f"stream-anon check {quoted(policy)} --data {table(data, encoding)}"


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def show(diagnostics: Iterable[Diagnostic]) -> None:
    """Print each finding with its place, its line with carets below the word, and the hint."""
    console = talk()
    for diagnostic in diagnostics:
        console.print(_headline(diagnostic))
        for line in excerpt(_source_line(diagnostic), diagnostic.column, diagnostic.width):
            console.print(Text(line))
        if diagnostic.hint:
            console.print(Text(f"  hint: {_one_line(diagnostic.hint)}", style="cyan"))


def as_data(diagnostics: Sequence[Diagnostic]) -> list[dict[str, Any]]:
    """Return the findings as plain data for `--json`."""
    keys = ("severity", "code", "message", "file", "line", "column", "width", "hint")
    return [{key: getattr(diagnostic, key) for key in keys} for diagnostic in diagnostics]


def excerpt(line: str, column: int, width: int) -> list[str]:
    """Return the line and, below it, carets under `width` characters from `column`; nothing for an empty line.

    >>> print(*excerpt("name: a b", 7, 3), sep="\\n")
      name: a b
            ^^^
    """
    if not line.strip() or not 1 <= column <= len(line) + 1:
        return []
    start = max(0, min(column - 1 - _WINDOW // 3, len(line) - _WINDOW))
    shown = line[start : start + _WINDOW]
    before = shown[: column - 1 - start]
    marked = shown[column - 1 - start :][:width]
    gap = "".join("\t" if character == "\t" else " " * cell_len(character) for character in before)
    return [f"  {shown}", f"  {gap}{'^' * max(cell_len(marked), 1)}"]


def _headline(diagnostic: Diagnostic) -> Text:
    label = f"{diagnostic.severity} {diagnostic.code}"
    return Text.assemble(
        f"{diagnostic.place}: ", (label, _COLOURS[diagnostic.severity]), f": {_one_line(diagnostic.message)}"
    )


def _source_line(diagnostic: Diagnostic) -> str:
    if not diagnostic.line:
        return ""
    try:
        with Path(diagnostic.file).open(encoding="utf-8-sig", errors="replace") as file:
            lines = file.read().split("\n")
    except (OSError, ValueError):
        return ""
    line = lines[diagnostic.line - 1] if diagnostic.line <= len(lines) else ""
    hidden = _SECRET.search(line) or line.lstrip().startswith("#")  # a comment is not what is wrong
    return "" if hidden else "".join(c if c.isprintable() or c == "\t" else "·" for c in line)


def _one_line(message: str) -> str:
    return "".join(c if c.isprintable() else "·" for c in message)
