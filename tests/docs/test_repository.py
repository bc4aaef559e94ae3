"""What a visitor expects is there and valid: workflows by their schema, files that pages name, the rooms."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.md")]


@pytest.mark.parametrize("schema", ["github-workflows"])
def test_workflows_are_valid(schema: str) -> None:
    files = sorted(map(str, (ROOT / ".github" / "workflows").glob("*.yml")))
    assert files
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *files]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_files_that_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`((?:docs|examples|tests|stream_anon|deploy|benchmarks)/[\w./-]+\.(?:md|py|yml|yaml))`", text)
    for name in named:
        assert (ROOT / name).exists(), name
    for link in re.findall(r"\]\(([\w./-]+\.md)\)", text):
        assert (page.parent / link).exists(), link


def test_the_architecture_names_every_room() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = [path.name for path in (ROOT / "stream_anon").iterdir() if (path / "__init__.py").exists()]
    for room in rooms:
        assert f"`{room}/`" in text, room
