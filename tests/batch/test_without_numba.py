"""The groups do not depend on whether loops are compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys, tempfile
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_batch_contract import ALGORITHMS, made_for, partition, prepared
for name in ALGORITHMS:
    with tempfile.TemporaryDirectory() as folder:
        rows, schema = prepared(Path(folder), made_for(name), count=100)
    print(name, [index.tolist() for index in partition(name, rows, schema, seed=2).classes])
"""


def groups(**environment: str) -> str:
    """What a process with this environment makes of one small table, by every algorithm."""
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", SCRIPT, str(Path(__file__).parent)]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, check=True, text=True).stdout


def test_compiled_and_plain_loops_make_the_same_groups() -> None:
    assert groups() == groups(NUMBA_DISABLE_JIT="1")
