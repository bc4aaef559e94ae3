"""`stream-anon replay` of a topic's past on a real broker, as a user calls it, and killed half-way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from stream_anon.cli import run_command as run
from stream_anon.demo import admissions, policy_text
from stream_anon.kafka.clients.kafka_python.topics import await_topics

COUNT, PARTITIONS, BEGIN = 600, 3, 1_700_000_000
KILLED = """
import os, signal, sys
from stream_anon.cli import run_command as run
from stream_anon.kafka.clients import client_of
from stream_anon.replay import topic_writer

transport = client_of(sys.argv[1]).transport
topic_writer.AT_ONCE, left, commit = 60, [int(sys.argv[2])], transport.commit

def dying(self):
    left[0] -= 1
    if left[0] == 0:
        self._producer.flush(30)
        os.kill(os.getpid(), signal.SIGKILL)
    commit(self)

transport.commit = dying
sys.exit(run(sys.argv[3:]))
"""


class Place:
    """A policy, an input topic that is full and an output topic that is empty."""

    def __init__(self, bootstrap: str, name: str, folder: Path, client: str) -> None:
        self.bootstrap, self.folder, self.client = bootstrap, folder, client
        self.input, self.output = f"{name}-in", f"{name}-out"
        kafka = {
            "bootstrap": bootstrap,
            "group": name,
            "input": self.input,
            "output": f"{name}-elsewhere",
            "client": client,
        }
        text = policy_text().replace("version: 1", "version: 1\nsecret: a secret only for the tests, of no value", 1)
        (folder / "policy.yaml").write_text(f"{text}\nkafka: {json.dumps(kafka)}\n", encoding="utf-8")
        self.create(self.input, PARTITIONS, **{"retention.ms": "-1"})
        self.create(self.output, 2)
        producer = KafkaProducer(bootstrap_servers=bootstrap)
        for i, record in enumerate(islice(admissions(3), COUNT)):
            when = int(1000 * (BEGIN + i / 20))
            producer.send(self.input, value=record, partition=i % PARTITIONS, timestamp_ms=when)
        producer.close()

    def create(self, topic: str, partitions: int, **config: str) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=config or None)])
        await_topics(admin, [topic])
        admin.close()

    def arguments(self, out: str, *more: str) -> list[str]:
        return ["replay", f"kafka:{self.input}", "-p", str(self.folder / "policy.yaml"), "-o", out, *more]

    def call(self, out: str, *more: str) -> int:
        return run(self.arguments(out, *more))

    def lines(self, name: str) -> list[str]:
        return sorted((self.folder / name).read_text(encoding="utf-8").splitlines())

    def read(self, level: str = "read_committed") -> list[str]:
        reader = KafkaConsumer(bootstrap_servers=self.bootstrap, isolation_level=level, fetch_max_wait_ms=50)
        partitions = [TopicPartition(self.output, p) for p in range(2)]
        reader.assign(partitions)
        reader.seek_to_beginning(*partitions)
        ends, found = reader.end_offsets(partitions), []
        while any(reader.position(tp) < ends[tp] for tp in partitions):
            for records in reader.poll(timeout_ms=200).values():
                assert all(record.key.decode() == json.loads(record.value)["_anon"]["group"] for record in records)
                found += [record.value.decode() for record in records]
        reader.close()
        return sorted(found)


@pytest.fixture
def client() -> str:
    return "kafka-python"


@pytest.fixture
def place(bootstrap: str, name: str, tmp_path: Path, client: str) -> Place:
    return Place(bootstrap, name, tmp_path, client)


each_client = pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])


@each_client
def test_the_whole_past_to_a_file_and_to_a_topic(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(place.folder / "out.jsonl")
    assert place.call(out, "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["consumed"] == COUNT
    assert found["published"] + found["suppressed"] == COUNT
    assert 0 < found["delay_max"] <= 3.0
    assert [path.name for path in place.folder.glob("out*")] == ["out.jsonl"]
    assert place.call(f"kafka:{place.output}") == 0
    assert place.read() == place.lines("out.jsonl")
    capsys.readouterr()
    assert place.call(f"kafka:{place.output}") == 0
    assert "already complete" in capsys.readouterr().err
    assert place.call(f"kafka:{place.output}", "-a", "sweep") == 1
    assert "another replay" in capsys.readouterr().err
    assert place.read("read_uncommitted") == place.lines("out.jsonl")


SPANS = [
    # remark, arguments, records meant
    ("by offset, in all partitions", ("--from", "50", "--to", "150"), 300),
    ("by offset, in one partition", ("--from", "0:100", "--from", "1:200", "--to", "2:10"), 110),
    ("by time", ("--from", "2023-11-14T22:13:30Z", "--to", "2023-11-14T22:13:40Z"), 200),
]


@pytest.mark.parametrize("more", [(), ("-a", "mondrian")])
def test_a_part_of_the_past(place: Place, more: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    for i, (remark, offset_range, count) in enumerate(SPANS):
        assert place.call(str(place.folder / f"{i}.jsonl"), "--json", *offset_range, *more) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["rows" if more else "consumed"] == count, remark
        assert len(place.lines(f"{i}.jsonl")) == found["published"]


@pytest.mark.parametrize(("more", "lives"), [((), (4, 3)), (("-a", "sweep"), (4,))])
def test_killed_half_way_it_goes_on_and_nothing_is_doubled(
    place: Place, more: tuple[str, ...], lives: tuple[int, ...]
) -> None:
    assert place.call(str(place.folder / "whole.jsonl"), *more) == 0
    whole = place.lines("whole.jsonl")
    arguments = place.arguments(f"kafka:{place.output}", *more)
    for commits in lives:
        command = [sys.executable, "-c", KILLED, place.client, str(commits), *arguments]
        assert subprocess.run(command, capture_output=True, timeout=120).returncode == -signal.SIGKILL
    assert 0 < len(place.read("read_uncommitted")) < len(whole)
    assert place.call(f"kafka:{place.output}", *more) == 0
    assert place.read() == whole
    seen = place.read("read_uncommitted")
    assert len(seen) > len(whole), "the dead runs showed records that were never committed"
    assert sorted(set(seen)) == whole, "and they were the same, in the same groups"


def test_a_file_goes_on_in_the_past_it_began_with(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.call(str(place.folder / "whole.jsonl")) == 0
    whole = (place.folder / "whole.jsonl").read_bytes()
    cut = """
import os, signal, sys
from stream_anon.cli import run_command as run
from stream_anon.formats.resume import Resumed
write = Resumed.write
def dying(self, data):
    write(self, data)
    if self._file.tell() > 40_000:
        self._file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    return len(data)
Resumed.write = dying
sys.exit(run(sys.argv[1:]))
"""
    command = [sys.executable, "-c", cut, *place.arguments(str(place.folder / "out.jsonl"))]
    assert subprocess.run(command, capture_output=True, timeout=120).returncode == -signal.SIGKILL
    assert 0 < (place.folder / "out.jsonl.partial").stat().st_size < len(whole)
    producer = KafkaProducer(bootstrap_servers=place.bootstrap)
    for record in islice(admissions(9), 30):
        producer.send(place.input, value=record, partition=0)
    producer.close()
    assert place.call(str(place.folder / "out.jsonl"), "--to", "40") == 1
    assert "another replay" in capsys.readouterr().err
    assert place.call(str(place.folder / "out.jsonl")) == 0
    assert (place.folder / "out.jsonl").read_bytes() == whole
    assert sorted(os.listdir(place.folder)) == ["out.jsonl", "policy.yaml", "whole.jsonl"]


def test_a_file_into_a_topic_and_topics_that_are_refused(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    records = b"".join(record + b"\n" for record in islice(admissions(3), 100))
    (place.folder / "in.jsonl").write_bytes(records + b"not JSON\n")
    call = ["replay", str(place.folder / "in.jsonl"), "-p", str(place.folder / "policy.yaml"), "--rate", "20"]
    assert run([*call, "-o", f"kafka:{place.output}", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["published"] == len(place.read())
    assert [json.loads(line)["line"] for line in said.err.splitlines() if line.startswith("{")] == [101]
    place.create(f"{place.output}-compacted", 1, **{"cleanup.policy": "compact"})
    for out, word in [(place.input, "something else"), (f"{place.output}-compacted", "cleanup.policy")]:
        assert run([*call, "-o", f"kafka:{out}"]) == 1
        assert word in capsys.readouterr().err
    assert place.call(f"kafka:{place.output}-none") == 1
    assert "create it first" in capsys.readouterr().err
