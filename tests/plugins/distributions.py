"""Makes distributions as pip would install them: a module, and the entry points it declares."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from stream_anon.cli import run_command as run
told = []
for name, *arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([name, *arguments])
    told.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(told))
"""
PIPE = "import sys; from stream_anon.cli import run_command; sys.exit(run_command(['pipe', '-p', 'policy.yaml']))"


def install(folder: Path, module: str, source: str, entry_points: str) -> None:
    """Put a module and the record of its installation into a folder."""
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")


def run(folder: Path, program: str, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own that finds what is installed in the folder."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        input=text,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def commands(folder: Path, *lines: list[str]) -> list[tuple[int, str, str]]:
    """Run commands of the program in one such process; for each its exit code, stdout and stderr."""
    done = run(folder, PROGRAM, json.dumps(lines))
    assert done.returncode == 0, done.stderr
    return [tuple(told) for told in json.loads(done.stdout)]  # type: ignore[misc]
