"""Gets the compiled kernels ready before a clock runs, and says so when that takes long enough to wonder."""

from __future__ import annotations

from threading import Timer

from stream_anon.cli import output
from stream_anon.core.kernels import COMPILED
from stream_anon.policy.settings import AlgorithmSettings
from stream_anon.runtime.warmup import warm_up

PATIENCE = 1.5
"""Seconds. Kernels that lie on disk are read in less."""


def make_ready(algorithm: AlgorithmSettings, quiet: bool = False) -> None:
    """Compile or read what the algorithm needs."""
    if not COMPILED:
        if not quiet:
            output.say("numba is not installed, so this runs slowly; to speed it up: pip install 'stream-anon[speed]'")
        return
    remark = Timer(PATIENCE, output.say, ["compiling the kernels, once for this machine: some seconds ..."])
    if not quiet:
        remark.start()
    try:
        warm_up(algorithm)
    finally:
        remark.cancel()
