"""The short form of `make rolling`: a worker is replaced under load, and nothing is lost, doubled or left announced."""

from __future__ import annotations

from chaos import MUST_BE_ZERO
from rolling import parse, run


def test_a_worker_replaced_under_load_changes_nothing(bootstrap: str) -> None:
    options = ["--client", "confluent-kafka", "--workers", "2", "--restarts", "1", "--rate", "300"]
    result = run(parse([*options, "--bootstrap", bootstrap]))
    assert {name: result[name] for name in MUST_BE_ZERO} == dict.fromkeys(MUST_BE_ZERO, 0), result
    assert result["left_announced"] == 0, "an orderly stop left a group announced"
    assert result["published"] > 1_000, result  # type: ignore[operator]
    assert result["longest_gap_seconds"] < 30, result  # type: ignore[operator]
