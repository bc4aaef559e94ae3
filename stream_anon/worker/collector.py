"""The garbage collector of a worker's process. What a poll brings is freed by reference counts, two transactions later;
the collector would go through thousands of such objects again and again, and find nothing.
"""

from __future__ import annotations

import gc

_YOUNG, _OLDER, _OLDEST = 20_000, 20, 20  # objects made, then collections, between two of a generation


def calm_collector() -> None:
    """Leave alone what is there when a worker begins, and collect seldom from then on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _OLDER, _OLDEST)
