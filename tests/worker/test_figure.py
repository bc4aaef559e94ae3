"""The worked figure of the CAIL rounds as a person runs it: the same two groups by pipe, replay and run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from broker_world import World, each_client

from stream_anon.core.kernels import COMPILED

VALUES = "bcdehacf"
TREE = {"N": {"L": {"I": ["a", "b"], "J": ["c", "d"]}, "M": {"K": ["e", "f", "g"], "h": None}}}
GROUPS = {"J": {2, 3, 7}, "M": {4, 5, 8}}
PROGRAM = [sys.executable, "-m", "stream_anon"]


SETTINGS = {"clusters": "standing", "threshold": 4, "completion": "merge"}


def policy(folder: Path, loss: str = "descendants", settings: dict[str, Any] = SETTINGS, **kafka: Any) -> Path:
    text: dict[str, Any] = {
        "version": 1,
        "name": "figure",
        "subject": "who",
        "secret": "a secret only for the tests, of no value",
        "attributes": {
            "who": {"role": "identifier"},
            "value": {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "tree", "tree": TREE}},
            "note": {"role": "insensitive"},
        },
        "privacy": [{"model": "k_anonymity", "k": 3}],
        "stream": {"max_delay": {"records": 7}} | ({"on_deadline": "hold"} if settings else {}),
        "algorithm": {"name": "cail", "loss": loss} | settings,
    }
    file = folder / "policy.yaml"
    file.write_text(json.dumps(text | ({"kafka": kafka} if kafka else {})))
    return file


def lines() -> list[bytes]:
    return [json.dumps({"who": f"person {i}", "value": value, "note": i}).encode() for i, value in enumerate(VALUES, 1)]


def groups(records: list[dict[str, Any]]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for record in records:
        found.setdefault(record["value"], set()).add(record["note"])
    return found


@pytest.mark.parametrize("loss", ["descendants", "subtree", "leaves"])
def test_by_pipe(tmp_path: Path, loss: str) -> None:
    done = subprocess.run(
        [*PROGRAM, "pipe", "-p", str(policy(tmp_path, loss))], input=b"\n".join(lines()) + b"\n", capture_output=True
    )
    assert done.returncode == 0, done.stderr
    found = groups([json.loads(line) for line in done.stdout.splitlines()])
    if loss == "descendants":  # the source's own counting
        assert found == GROUPS
    assert all(len(members) >= 3 for members in found.values())


def test_by_pipe_with_default_settings(tmp_path: Path) -> None:
    """Nothing is said but k, the bound and the source's counting; what is in no group of the source is suppressed."""
    command = [*PROGRAM, "pipe", "-p", str(policy(tmp_path, settings={}))]
    done = subprocess.run(command, input=b"\n".join(lines()) + b"\n", capture_output=True)
    assert done.returncode == 0, done.stderr
    assert groups([json.loads(line) for line in done.stdout.splitlines()]) == GROUPS


def test_by_replay(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines()) + b"\n")
    command = [*PROGRAM, "replay", str(tmp_path / "in.jsonl"), "-p", str(policy(tmp_path)), "--rate", "1"]
    done = subprocess.run([*command, "-o", str(tmp_path / "out.jsonl")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert groups([json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]) == GROUPS


@each_client
def test_by_run(world: World, tmp_path: Path) -> None:
    world.create(1)
    kafka = {"bootstrap": world.bootstrap, "group": world.name, "input": world.input, "output": world.output}
    world.produce(*lines())
    command = [*PROGRAM, "run", "-p", str(policy(tmp_path, client=world.client, **kafka)), "--status-port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        world.until(lambda: process.poll() is not None or len(world.read()) >= 6)
    finally:
        process.send_signal(signal.SIGTERM)
        _, talk = process.communicate(timeout=60)
    assert process.returncode == 0, talk
    assert groups(world.read()) == GROUPS


def test_the_install_is_a_full_one() -> None:
    assert COMPILED, "without numba nothing is warmed up, and nothing is shown here"
