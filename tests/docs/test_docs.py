"""Documentation is run: commands print what pages say, examples do what they claim, the reference is current."""

from __future__ import annotations

import doctest
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from stream_anon.cli import COMMANDS as ALL_COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = sorted(page for page in (ROOT / "docs").glob("*.md") if "```console" in page.read_text(encoding="utf-8"))
COMMANDS = set(ALL_COMMANDS)
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def trials(text: str) -> list[tuple[str, str]]:
    """Each command of the page with what it is said to print."""
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    found = [re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE) for block in blocks]
    return [trial for block in found for trial in block]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for the commands of a page; what they left running is ended with it."""
    yield tmp_path
    for file in tmp_path.glob("*.pid"):
        with suppress(ProcessLookupError):  # asked to end, a broker takes its Java along; killed, it does not
            os.kill(int(file.read_text()), signal.SIGTERM)
            for _ in range(100):
                time.sleep(0.1)
                os.kill(int(file.read_text()), 0)
            os.kill(int(file.read_text()), signal.SIGKILL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_true(page: Path, folder: Path) -> None:
    """One folder for all commands of a page, in their order; `...` stands for whatever differs."""
    text = page.read_text(encoding="utf-8")
    for name, content in re.findall(r"`([\w.]+)`:\n\n```\w+\n(.*?)```", text, re.DOTALL):
        (folder / name).write_text(content, encoding="utf-8")
    for command, expected in trials(text):
        result = subprocess.run(
            ["bash", "-c", f"{{ {command}\n}} 2>&1"], cwd=folder, capture_output=True, text=True, timeout=300,
            env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "120"},
        )  # fmt: skip
        assert result.returncode == 0, result.stdout
        said = re.sub(r"^compiling the kernels.*\n", "", result.stdout, flags=re.MULTILINE)
        assert doctest.OutputChecker().check_output(expected, said, SAME), f"$ {command}\n{said}"


def test_the_pages_are_there() -> None:
    assert {page.stem for page in PAGES} >= {"tutorial", "kafka-tutorial", "hierarchies"}


def test_the_page_for_programmers_works() -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    exec("\n".join(blocks), names)
    assert len(names["published"]) == 12  # type: ignore[arg-type]


def test_the_worked_example_works() -> None:
    text = (ROOT / "docs" / "adding-an-algorithm.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 3
    assert "check_algorithm" in blocks[2]  # the example of the same name runs it
    names: dict[str, object] = {}
    exec("\n".join(blocks[:2]), names)
    groups, suppressed = names["groups"], names["anonymizer"].counts["suppressed"]  # type: ignore[attr-defined]
    assert isinstance(groups, list)
    published = sum(map(len, groups))
    assert published + suppressed == 300
    assert published > 250


def test_the_reference_is_current() -> None:
    made = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "make_reference.py")], capture_output=True, text=True, check=True
    )
    written = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert made.stdout == written, "run: python docs/make_reference.py > docs/reference.md"
    for command in COMMANDS:
        assert f"### stream-anon {command}\n" in written


@pytest.mark.parametrize("page", [ROOT / "README.md", *(ROOT / "docs").glob("*.md")], ids=lambda page: page.stem)
def test_pages_that_are_named_exist(page: Path) -> None:
    for name in re.findall(r"`(docs/[\w.-]+)`", page.read_text(encoding="utf-8")):
        assert (ROOT / name).exists(), name
