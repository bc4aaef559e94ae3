"""Ends of intervals: no policy publishes somebody's exact number unless it says so, and `check` warns if it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_anon.auditor.policy import read_rules
from stream_anon.cli import run_command as run
from stream_anon.core.hierarchy.base import Leaves
from stream_anon.core.hierarchy.interval import FEW_STEPS, IntervalHierarchy
from stream_anon.core.hierarchy.settings import hierarchy_problems
from stream_anon.policy import load

POLICY = """version: 1
name: incomes
subject: who
attributes:
  who: {{role: identifier}}
  income: {{role: quasi_identifier, type: {type}, hierarchy: {{kind: interval, {settings}}}}}
privacy:
  - {{model: k_anonymity, k: 3}}
"""

CASES = [
    # remark, type, settings, what is proposed ("" where nothing has to be)
    ("many integers", "integer", "range: [0, 99999]", "[5000, 10000]"),
    ("one step too many", "integer", "range: [0, 51]", "[5, 10]"),
    ("some tens of integers", "integer", "range: [0, 50]", ""),
    ("cents", "number", "range: [0, 1000], step: 0.01", "[50, 100]"),
    ("a few cells of decimals", "number", "range: [0, 20], step: 0.5", ""),
    ("an open domain", "integer", "scale: 1000", "[50, 100]"),
    ("an open domain, few steps wide", "integer", "scale: 20", "[2, 10]"),
    ("a grid that is the step itself", "integer", "range: [0, 999], snap: [1]", "[50, 100]"),
    ("a grid", "integer", "range: [0, 999], snap: [100]", ""),
    ("exact values, else a grid", "integer", "range: [0, 999], snap: [1, 100]", ""),
]


def write(folder: Path, type_: str, settings: str) -> Path:
    path = folder / "policy.yaml"
    path.write_text(POLICY.format(type=type_, settings=settings))
    return path


@pytest.mark.parametrize(("type_", "settings", "proposed"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_grids_are_required(
    type_: str, settings: str, proposed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", str(write(tmp_path, type_, settings))]) == (3 if proposed else 0)
    told = " ".join(capsys.readouterr().err.split())
    if not proposed:
        return
    assert "policy.yaml:6:" in told
    assert "error missing-snap: " in told
    assert f'add "snap: {proposed}"' in told
    settings = settings.partition(", snap")[0]
    assert run(["check", str(write(tmp_path, type_, f"{settings}, snap: {proposed}"))]) == 0
    assert "exact" not in capsys.readouterr().err
    assert run(["check", str(write(tmp_path, type_, f"{settings}, snap: none"))]) == 0
    assert "warning exact-ends: " in capsys.readouterr().err


def test_any_other_word_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(write(tmp_path, "integer", "range: [0, 999], snap: nothing"))]) == 3
    assert "a list of grids" in " ".join(capsys.readouterr().err.split())


@given(
    st.integers(-1000, 1000),
    st.integers(1, 5000),
    st.lists(st.integers(1, 7), max_size=3),
    st.sampled_from([None, 0.25, 0.01, 10.0]),
    st.data(),
)
def test_what_is_accepted_publishes_no_exact_end(
    low: int, width: int, factors: list[int], step: float | None, data: st.DataObject
) -> None:
    """Whatever the range, grids and step: two different numbers are never published by their own steps."""
    unit, grids = step or 1.0, []
    for factor in factors:
        grids.append(factor * (grids[-1] if grids else unit))
    ends = (low * unit, (low + width) * unit)
    spec = IntervalHierarchy(kind="interval", range=ends, step=step, snap=grids or None)
    problems = [*hierarchy_problems(("age",), "number" if step else "integer", spec), *spec.quasi_rules()]
    if problems or width <= FEW_STEPS:
        return
    positions = st.integers(low, low + width - 1)
    one, other = sorted(data.draw(st.tuples(positions, positions).filter(lambda pair: pair[0] != pair[1])))
    label: Any = spec.build(Path(), Leaves()).label(one, other)
    coarsest = round(grids[-1] / unit)
    cells = [round(label[0] / unit), round(label[1] / unit) + (0 if step else 1)]
    assert all(
        any(cell % round(grid / unit) == 0 for grid in grids if grid > unit)
        or cell in (low, low + width, low + width + 1)
        for cell in cells
    )
    assert coarsest > 1


def test_the_auditor_reads_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy, raw = write(tmp_path, "integer", "range: [0, 99999], snap: none"), tmp_path / "raw.jsonl"
    raw.write_text("".join(json.dumps({"who": i, "income": 1000 + 137 * i}) + "\n" for i in range(9)))
    out = tmp_path / "out.jsonl"
    assert run(["anonymize", str(raw), "-p", str(policy), "-o", str(out)]) == 0
    published = [json.loads(line)["income"] for line in out.read_text().splitlines()]
    assert {end for pair in published for end in pair} <= {1000 + 137 * i for i in range(9)}
    assert run(["audit", str(out), "-p", str(policy), "--raw", str(raw)]) == 0
    read_rules(write(tmp_path, "integer", "range: [0, 99999], snap: [5000]"))
    assert run(["audit", str(out), "-p", str(policy)]) == 4
    assert "outside-hierarchy" in capsys.readouterr().err


def test_none_and_nothing_said_are_told_apart(tmp_path: Path) -> None:
    said = load(write(tmp_path, "integer", "range: [0, 20], snap: none")).policy.quasi_identifiers["income"]
    unsaid = load(write(tmp_path, "integer", "range: [0, 20]")).policy.quasi_identifiers["income"]
    assert (said.hierarchy.snap, unsaid.hierarchy.snap) == ([], None)
