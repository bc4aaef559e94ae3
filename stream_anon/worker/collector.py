"""Settings of the garbage collector in a worker's process.

Polled objects are freed by reference counts two transactions later; the collector would scan thousands of them again
and again, and find nothing.
"""

from __future__ import annotations

import gc

_YOUNG, _OLDER, _OLDEST = 20_000, 20, 20  # objects made, then collections, between two of a generation


def calm_collector() -> None:
    """Exempt what exists when a worker begins, and collect seldom from then on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _OLDER, _OLDEST)
