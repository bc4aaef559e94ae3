"""A docstring is a sentence: four words at least, anywhere in the package."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]
FEWEST = 4
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def unfinished() -> list[str]:
    """Return the patterns of files whose words are not revised yet, as pyproject.toml lists them for D401."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    return [pattern for pattern, rules in settings["per-file-ignores"].items() if "D401" in rules]


def too_short(path: Path) -> Iterator[str]:
    """Yield the place of every docstring with fewer than `FEWEST` words."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, DOCUMENTED):
            text = ast.get_docstring(node)
            if text is not None and len(text.split()) < FEWEST:
                yield f"{path}:{getattr(node, 'lineno', 1)}: {text}"


def test_every_docstring_is_a_sentence() -> None:
    exempt = unfinished()
    paths = sorted((ROOT / "stream_anon").rglob("*.py"))
    judged = [path for path in paths if not any(fnmatch(str(path.relative_to(ROOT)), one) for one in exempt)]
    assert len(judged) > 200, "the package was not found"
    assert [place for path in judged for place in too_short(path)] == []


def test_a_short_docstring_is_found(tmp_path: Path) -> None:
    short = tmp_path / "short.py"
    short.write_text('"""Four words are enough."""\n\ndef count() -> None:\n    """Count it."""\n', encoding="utf-8")
    assert [line.rpartition(": ")[2] for line in too_short(short)] == ["Count it."]
