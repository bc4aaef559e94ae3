"""topics and feed, as a person calls them, on a real broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from broker_world import World, each_client, policy_on
from kafka.admin import NewTopic

from stream_anon.cli import run_command as run
from stream_anon.kafka.clients.kafka_python.topics import await_topics
from stream_anon.kafka.local_broker.broker import free_port


@each_client
def test_topics_are_made_once(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["topics", "-p", str(policy_on(world, tmp_path)), "--partitions", "3", "--json"]
    for created in (True, False):
        assert run(command) == 0
        found = {topic["topic"]: topic for topic in json.loads(capsys.readouterr().out)}
        assert {name: topic["partitions"] for name, topic in found.items()} == {
            world.input: 3,
            world.output: 3,
            world.dead: 1,
        }
        assert {(topic["created"], topic["cleanup_policy"]) for topic in found.values()} == {(created, "delete")}


def test_topics_refuses_a_compacted_output(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world.admin.create_topics([NewTopic(world.output, 1, 1, topic_configs={"cleanup.policy": "compact"})])
    await_topics(world.admin, [world.output])
    assert run(["topics", "-p", str(policy_on(world, tmp_path))]) == 1
    assert "cleanup.policy to delete" in capsys.readouterr().err


@each_client
def test_topics_asks_for_no_more_copies_than_there_are_brokers(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["topics", "-p", str(policy_on(world, tmp_path)), "--replication", "30"]) == 1
    assert "number of brokers" in capsys.readouterr().err


@each_client
def test_lines_become_records(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world.create(2)
    lines = tmp_path / "lines"
    lines.write_text('{"n": 1}\n\n{"n": 2}\n{"n": 3}')
    with lines.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert run(["feed", "-p", str(policy_on(world, tmp_path)), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"topic": world.input, "records": 3}
    assert [record["n"] for record in world.read(world.input)] == [1, 3]  # its first partition


def test_made_up_records_come_at_a_rate(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world.create(1)
    command = ["feed", "-p", str(policy_on(world, tmp_path)), "--demo", "--rate", "100", "--seconds", "0.5", "--json"]
    assert run(command) == 0
    told = json.loads(capsys.readouterr().out)["records"]
    assert 0 < told <= 50
    assert len(world.read(world.input)) == told


def test_a_topic_that_cannot_be_reached(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = policy_on(world, tmp_path)
    text = file.read_text().replace(world.bootstrap, f"127.0.0.1:{free_port()}")
    file.write_text(text.replace("options: {", 'options: {"bootstrap.timeout.ms": 500, '))
    assert run(["feed", "-p", str(file), "--demo"]) == 1
    assert "stream-anon doctor" in capsys.readouterr().err
    assert run(["topics", "-p", str(file)]) == 1
    assert "nothing listens there: start the broker" in capsys.readouterr().err
