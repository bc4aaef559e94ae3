"""A flood of records that are none: no crash, each dead-lettered once, and no value of them anywhere."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path

from test_build import world

from stream_anon.observe.logs import log_to

MARK = "PLANTED"
GOOD = {"person": "p", "age": 30, "illness": "flu", "rid": 1}
KINDS: list[bytes | None] = [
    None,
    b"",
    MARK.encode(),
    f'"{MARK}"'.encode(),
    f'["{MARK}"]'.encode(),
    f'{{"age": "{MARK}"'.encode(),
    b"\xff\xfe" + MARK.encode(),
    b"nul\x00" + MARK.encode(),
    json.dumps({**GOOD, "age": MARK}).encode(),
    json.dumps({**GOOD, "age": [MARK]}).encode(),
    json.dumps({**GOOD, "age": {"x": MARK}}).encode(),
    json.dumps({**GOOD, "illness": [MARK]}).encode(),
    json.dumps({**GOOD, "age": None, "rid": MARK}).encode(),
    json.dumps({"person": MARK, "illness": MARK}).encode(),
    b"[" * 2_000 + MARK.encode(),
]


def test_a_hundred_thousand_malformed_records(tmp_path: Path) -> None:
    root = logging.getLogger()
    before, told = (root.handlers, root.level), io.StringIO()
    log_to(told, logging.DEBUG)
    try:
        broker, worker, metrics, now = world(tmp_path, partitions=4)
        count = 100_000
        for i in range(count):
            broker.produce("in", i % 4, KINDS[i % len(KINDS)])
        for _ in range(3_000):
            worker.step()
            now[0] += 0.02
            if len(broker.committed) == 4 and sum(c.offset for c in broker.committed.values()) == count:
                break
    finally:
        root.handlers, root.level = before
    letters = [json.loads(e.value or b"") for e in broker.read("dead")]
    places = {(letter["partition"], letter["offset"]) for letter in letters}
    assert len(places) == len(letters) == count
    text = told.getvalue() + "".join(json.dumps(letter) for letter in letters) + str(list(metrics.registry.collect()))
    assert MARK not in text
    assert broker.read("out", committed_only=False) == []
