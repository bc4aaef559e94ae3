"""The short form of `make chaos`: some failures must change nothing, and the check must notice when they do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chaos import MUST_BE_ZERO, parse, run
from pieces import done, total

WAYS = [["--client", "kafka-python"], ["--client", "confluent-kafka", "--ledger"]]


@pytest.mark.parametrize("way", WAYS, ids=["beside offsets", "in a topic"])
def test_three_failures_change_nothing(bootstrap: str, way: list[str]) -> None:
    result = run(parse(["--kills", "3", "--rate", "600", "--bootstrap", bootstrap, *way]))
    assert {name: result[name] for name in MUST_BE_ZERO} == dict.fromkeys(MUST_BE_ZERO, 0), result
    assert result["still_consuming"], result
    assert result["left_announced"] == 0, "an orderly stop left a group announced"
    assert result["stop_seconds"] <= 30, result  # type: ignore[operator]  # 10 on a machine of its own


def test_without_announcing_the_check_fails(bootstrap: str) -> None:
    """A kill does harm only where a transaction is open, and on a busy machine not every run meets one."""
    options = ["--no-announce", "--only", "kill", "--kills", "4", "--dwell", "1", "--rate", "600"]
    runs = (run(parse([*options, "--bootstrap", bootstrap, "--seed", seed])) for seed in "123")
    assert any(result["rows_in_two_groups_uncommitted"] > 0 for result in runs)  # type: ignore[operator]


def test_pieces_are_kept_and_summed(tmp_path: Path) -> None:
    """A breach in any piece shows in the sum."""
    file = tmp_path / "pieces.jsonl"
    assert done(file) == []
    counts = dict.fromkeys(("records", "published", "uncommitted_records", "left_for_successor", *MUST_BE_ZERO), 0)
    for client, kills, lost in (("mixed", 20, 0), ("kafka-python", 7, 3)):
        piece = {**counts, "lost": lost, "kills": kills, "client": client, "events": {"kill": kills}, "scene": "one"}
        with file.open("a") as kept:
            kept.write(json.dumps({**piece, "ledger_topic": client == "mixed", "still_consuming": True}) + "\n")
    found = total(done(file))
    assert (found["pieces"], found["kills"], found["lost"]) == (2, 27, 3)
    assert (found["kills_by_client"], found["kills_with_ledger_topic"]) == ({"mixed": 20, "kafka-python": 7}, 20)
