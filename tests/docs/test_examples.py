"""Every example runs as it stands, in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "visits")


def test_all_are_listed() -> None:
    listed = (FOLDER / "README.md").read_text()
    assert len(EXAMPLES) >= 8
    for name in EXAMPLES:
        assert f"`{name}.py`" in listed


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_runs(name: str) -> None:
    if name == "bytewax_flow" and sys.version_info >= (3, 13):
        pytest.skip("Bytewax has no builds for this Python")
    if name == "spark_frame" and shutil.which("java") is None and not os.environ.get("STREAM_ANON_REQUIRE_ALL"):
        pytest.skip("Spark needs Java 17 or later")
    done = subprocess.run([sys.executable, str(FOLDER / f"{name}.py")], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout
