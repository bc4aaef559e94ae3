"""Every benchmark that needs no broker, in short: it runs to its end and tells what it measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SHORT = [
    ("encode.py", [], "rows_per_cpu_second"),
    (
        "stream.py",
        ["--rows", "3000", "--k", "5", "--l", "1", "--delay", "300", "--algorithm", "cail"],
        "rows_per_cpu_second",
    ),
    ("soak.py", ["--rows", "40000"], "rows"),
    ("audit.py", ["--records", "20000"], "records_per_cpu_second"),
    ("batch.py", ["--rows", "2000", "--only", "mondrian"], "ncp"),
]


@pytest.mark.parametrize(("name", "options", "told"), SHORT, ids=[name for name, *_ in SHORT])
def test_it_runs_and_tells(name: str, options: list[str], told: str) -> None:
    command = [sys.executable, str(FOLDER / name), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    line = json.loads(done.stdout.splitlines()[-1])
    assert told in str(line), line
