"""A flood of records that are none: no crash, each dead-lettered once, and no value of them anywhere."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path

from broker_world import World, policy_on
from kafka import KafkaConsumer, TopicPartition
from test_build import world

from stream_anon.cli.prepare import prepare
from stream_anon.observe.logs import log_to
from stream_anon.worker.factory import core_of

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


def test_malformed_records_in_memory(tmp_path: Path) -> None:
    root = logging.getLogger()
    before, told = (root.handlers, root.level), io.StringIO()
    log_to(told, logging.DEBUG)
    try:
        broker, worker, metrics, now = world(tmp_path, partitions=4)
        count = 15_000
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


def test_many_malformed_records_on_a_real_broker(bootstrap: str, name: str, tmp_path: Path) -> None:
    count = 20_000
    on = World(bootstrap, name).create(4)
    root = logging.getLogger()
    before, told = (root.handlers, root.level), io.StringIO()
    log_to(told, logging.DEBUG)
    try:
        for i in range(count):
            value = KINDS[i % len(KINDS)]
            on.producer.send(on.input, value=value, key=MARK.encode(), headers=[("h", MARK.encode())], partition=i % 4)
        on.producer.flush()
        _, schema = prepare(policy_on(on, tmp_path))
        worker = on.worker(core_of(schema), delay=2.0)
        dead = TopicPartition(on.dead, 0)
        reader = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
        on.until(lambda: reader.end_offsets([dead])[dead] > count, worker, timeout=200)  # and a marker
        on.until(lambda: not worker.state.unpublished, worker)
        reader.close()
        letters = on.records(on.dead, "read_uncommitted")
        assert on.records(level="read_uncommitted") == []
    finally:
        root.handlers, root.level = before
        on.close()
    places = {(letter["partition"], letter["offset"]) for letter in (json.loads(value) for _, value in letters)}
    assert len(places) == len(letters) == count
    assert MARK not in told.getvalue()
    assert not [value for _, value in letters if MARK.encode() in value]
