"""One record passes few doors, and what is published of it is kept from whatever decides about groups."""

from __future__ import annotations

import pytest
from doors import count

MOST = {"run": 29, "pipe": 21, "anonymize": 19}
"""Functions that are given the record. They were 46, 36 and 35 once, by the same count."""

BLIND = ("core/privacy/", "core/judging/", "stream/kernels/", "batch/shared/", "batch/sweep/")
"""Rooms that decide which rows leave together: they see codes and positions, no published value."""


@pytest.mark.parametrize("way", MOST)
def test_a_record_passes_few_doors(way: str) -> None:
    doors = list(count(way))
    assert 15 < len(doors) <= MOST[way], doors
    assert not [door for door in doors if door.startswith(BLIND)]
    knowing = {door.split()[0] for door in doors if door.startswith(("stream/", "batch/"))}
    assert knowing <= {"stream/engine.py", "stream/buffer.py", "batch/__init__.py"}
