"""What a visitor expects is there and valid: workflows by their schema, files that pages name, the rooms."""

from __future__ import annotations

import ast
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


def test_no_room_is_a_bag() -> None:
    """More than fifteen files in one folder are several rooms; commands alone are one each."""
    rooms = [folder for folder in (ROOT / "stream_anon").rglob("*") if (folder / "__init__.py").exists()]
    assert len(rooms) > 20
    crowded = {str(room.relative_to(ROOT)) for room in rooms if len(list(room.glob("*.py"))) > 15}
    assert crowded <= {"stream_anon/cli"}


def test_few_functions_take_many_arguments() -> None:
    """Commands take an argument for every option, and some kernels many arrays; nothing else does."""
    many = []
    for path in (ROOT / "stream_anon").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = [a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
                if len([name for name in given if name not in ("self", "cls")]) > 8:
                    many.append(f"{path.relative_to(ROOT)} {node.name}")
    assert len(many) <= 10, many


def test_no_two_test_files_have_one_name() -> None:
    """Which of them is collected, and whether any is, would depend on their order."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})


def test_nothing_else_lies_at_the_top() -> None:
    """What a run leaves in the folder it was started in must not be committed with the next change."""
    asked = ["git", "-C", str(ROOT), "ls-tree", "--name-only", "HEAD"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
    if not found:
        pytest.skip("not a checkout")
    folders = {"benchmarks", "deploy", "docs", "examples", "stream_anon", "tests"}
    files = {"LICENSE", "Makefile", "docker-compose.yml", "pyproject.toml"}
    assert {name for name in found if not name.startswith(".") and not name.endswith(".md")} == folders | files
