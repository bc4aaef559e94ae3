"""The bytes of every algorithm are those of the stored digests."""

from __future__ import annotations

import json

from published import STORED, digests


def test_published_bytes_are_the_same_as_ever() -> None:
    stored = json.loads(STORED.read_text())
    assert len(stored) >= 30
    assert "nothing" not in stored.values()
    assert digests() == stored
