"""What `sensitivity` of (l, c)-anonymity does: it orders buckets, and so decides who keeps whom company."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from making import classes, number, rows_of, schema_of

from stream_anon.batch import partition
from stream_anon.cli import run_command as run
from stream_anon.core.schema import Schema

GRAVE, MILD = ["hiv", "cancer", "stroke", "sepsis"], ["flu", "cough", "acne", "myopia"]
TREE = {"any": {"grave": GRAVE, "mild": MILD}}
HIGH, LOW = dict.fromkeys(GRAVE, 0.9), dict.fromkeys(MILD, 0.1)


def schema(folder: Path, sensitivities: dict[str, float], l: int | dict[str, int] = 2) -> Schema:  # noqa: E741
    demands = l if isinstance(l, dict) else dict.fromkeys(GRAVE + MILD, l)
    values = {name: {"l": demands[name], "sensitivity": s} for name, s in sensitivities.items()}
    model = {"model": "lc_anonymity", "attribute": "ill", "l": 2, "c": 0.6, "values": values}
    ill = {"role": "sensitive", "hierarchy": {"kind": "tree", "tree": TREE}}
    return schema_of(folder, {"age": number(0, 99), "ill": ill}, [model])


def records(count: int = 400, seed: int = 0) -> list[dict[str, Any]]:
    """Grave illnesses come with age: the nearest company of a grave one is a grave one."""
    rng = np.random.default_rng(seed)
    grave = rng.random(count) < 0.5
    age = np.where(grave, rng.integers(50, 100, count), rng.integers(0, 60, count))
    ill = [str(rng.choice(GRAVE if g else MILD)) for g in grave]
    return [{"age": int(a), "ill": i} for a, i in zip(age, ill, strict=True)]


def only_grave(folder: Path, sensitivities: dict[str, float]) -> int:
    """Records open to a similarity attack: everybody in the class is gravely ill."""
    made, rows = schema(folder, sensitivities), records()
    groups = partition("lc-clustering", rows_of(made, rows), made).groups
    shown = [[value for (value,) in group.rows.values.tolist()] for group in groups]
    return sum(len(values) for values in shown if set(values) <= set(GRAVE))


def test_the_most_sensitive_seed_and_the_least_fill(tmp_path: Path) -> None:
    assert only_grave(tmp_path, dict.fromkeys(GRAVE + MILD, 0.0)) > 40
    assert only_grave(tmp_path, HIGH | LOW) == 0


@pytest.mark.parametrize("demands", [2, dict(zip(GRAVE + MILD, [5, 4, 4, 3, 2, 2, 3, 3], strict=True))])
def test_reversed_sensitivities_give_other_classes(tmp_path: Path, demands: Any) -> None:
    """Also where l does not follow sensitivity; whatever the order, the policy is kept."""
    spread = {name: (i + 1) / 10 for i, name in enumerate(GRAVE + MILD)}
    backwards = {name: 1 - s for name, s in spread.items()}
    found = []
    for sensitivities in (spread, backwards):
        made = schema(tmp_path, sensitivities, demands)
        rows = rows_of(made, records())
        result = partition("lc-clustering", rows, made)  # the gate asks the model again
        assert len(result.suppressed) < 0.1 * len(rows)
        found.append(classes(result.classes))
    assert found[0] != found[1]


def test_check_says_where_it_has_no_effect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema(tmp_path, HIGH | LOW)
    assert run(["check", str(tmp_path / "policy.yaml")]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "warning sensitivity-unused: sensitivity orders the classes of the batch algorithm lc-clustering" in told
    schema(tmp_path, dict.fromkeys(GRAVE + MILD, 0.0))
    assert run(["check", str(tmp_path / "policy.yaml")]) == 0
    assert "sensitivity" not in capsys.readouterr().err


def test_no_other_algorithm_looks_at_it(tmp_path: Path) -> None:
    made = [schema(tmp_path, s) for s in (HIGH | LOW, {name: 1 - s for name, s in (HIGH | LOW).items()})]
    for algorithm in ("mondrian", "sweep", "k-member"):
        one, other = (classes(partition(algorithm, rows_of(s, records()), s).classes) for s in made)
        assert one == other
