"""The short form of `make chaos`: six failures must change nothing, and the check must notice when they do."""

from __future__ import annotations

from chaos import MUST_BE_ZERO, parse, run


def test_six_failures_change_nothing(bootstrap: str) -> None:
    result = run(parse(["--kills", "6", "--rate", "600", "--bootstrap", bootstrap]))
    assert {name: result[name] for name in MUST_BE_ZERO} == dict.fromkeys(MUST_BE_ZERO, 0), result
    assert result["still_consuming"], result
    assert result["left_announced"] == 0, "an orderly stop left a group announced"
    assert result["stop_seconds"] <= 30, result  # type: ignore[operator]  # 10 on a machine of its own


def test_without_announcing_the_check_fails(bootstrap: str) -> None:
    """A kill does harm only where a transaction is open, and on a busy machine not every run meets one."""
    options = ["--no-announce", "--only", "kill", "--kills", "4", "--dwell", "1", "--rate", "600"]
    runs = (run(parse([*options, "--bootstrap", bootstrap, "--seed", seed])) for seed in "123")
    assert any(result["rows_in_two_groups_uncommitted"] > 0 for result in runs)  # type: ignore[operator]
