"""With and without numba: the same groups to the last byte, ties included."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import ALGORITHMS, VARIANTS, WAGES, row_of
from contract import Run, deliver

from stream_anon.core.kernels import COMPILED
from stream_anon.policy.settings import MaxDelay, StreamSettings
from stream_anon.testing.contract.definitions import LEAVES

CASES = [("by default", name, {}) for name in ALGORITHMS] + VARIANTS
STREAMS = [
    # remark, policy, people, groups of look-alikes, max_delay
    ("varied", "k", 40, 400, MaxDelay(records=60)),
    ("hardly any differences, so many ties", "several sensitive attributes", 7, 3, MaxDelay(records=25)),
    ("repeating, both bounds", "l and c", 400, 30, MaxDelay(records=45, time=30.0)),
    ("a long wait for small groups", "k", 300, 50, MaxDelay(records=110)),
]


def random_rows(seed: int, people: int, kinds: int, count: int) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    rows = [row_of(int(number)) for number in random.integers(0, 2**48, size=kinds)]
    return [
        rows[random.integers(kinds)]
        | {
            "person": int(random.integers(people)),
            "illness": LEAVES[random.integers(len(LEAVES))],
            "pay": WAGES[random.integers(3)],
            "guard": None,
        }
        for _ in range(count)
    ]


def digests() -> list[str]:
    """One line per case, and two streams for each: what was published and what was suppressed."""
    lines = []
    for number, (remark, algorithm, changed) in enumerate(CASES):
        for stream, policy, people, kinds, bound in (STREAMS[0], STREAMS[1 + number % (len(STREAMS) - 1)]):
            run = Run.of(policy, algorithm, StreamSettings(max_delay=bound), changed)
            deliver(run, random_rows(people, people, kinds, 120), lambda: 37, lambda: 1)
            run.flush()
            told = repr(([group.encoded() for group in run.groups], sorted(run.suppressed)))
            lines.append(f"{algorithm}: {remark}, {stream}: {hashlib.sha256(told.encode()).hexdigest()}")
    return lines


@pytest.mark.skipif(not COMPILED, reason="numba is not installed: there is only one path")
def test_groups_do_not_depend_on_numba() -> None:
    program = "import sys; sys.modules['numba'] = None; import test_numpy_path as t; print(*t.digests(), sep='\\n')"
    here = Path(__file__).parent
    found = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", program],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == digests()
