"""One engine over all partitions: eight of them cost no more information than one at the same rate and delay."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from test_build import policy

from stream_anon.cli.prepare import prepare
from stream_anon.observe.observer import Floats, Observer
from stream_anon.testing.memory import MemoryTransport
from stream_anon.testing.memory_log import MemoryBroker
from stream_anon.worker.factory import core_of, settings_of
from stream_anon.worker.loop import Worker


class Loss(Observer):
    def __init__(self) -> None:
        self.lost = self.rows = 0.0

    def published(
        self, reasons: Sequence[str], sizes: Sequence[int], delays: Floats, ages: Floats, losses: Floats
    ) -> None:
        self.lost += float(np.dot(losses.mean(axis=1), sizes))
        self.rows += len(delays)


def mean_loss(tmp_path: Path, partitions: int, apart: bool = False) -> float:
    loaded, schema = prepare(policy(tmp_path))
    broker = MemoryBroker("in", partitions=partitions)
    broker.create_topic("out")
    broker.create_topic("dead")
    loss, now = Loss(), [0.0]
    settings = replace(settings_of(loaded.policy), apart=apart)
    worker = Worker(MemoryTransport(broker, "w"), core_of(schema), settings, loss, clock=lambda: now[0])
    rng = np.random.default_rng(4)
    for number in range(4_000):
        record = {"person": f"p{number}", "age": int(rng.integers(0, 99)), "illness": "flu", "rid": number}
        broker.produce("in", number % partitions, json.dumps(record).encode())
        if number % 10 == 9:
            worker.step()
            now[0] += 0.05
    assert loss.rows > 3_000
    return loss.lost / loss.rows


def test_eight_partitions_lose_no_more_than_one(tmp_path: Path) -> None:
    one, eight = mean_loss(tmp_path, 1), mean_loss(tmp_path, 8)
    assert eight <= 1.05 * one
    assert mean_loss(tmp_path, 8, apart=True) > 1.5 * one
