"""What keeps the worker readable: states have owners, groups have types, sizes have one place, records few doors."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from json import loads
from pathlib import Path

import numpy as np
import pytest
from fifo import Group, Rows, fifo_core

from stream_anon.errors import PrivacyViolation
from stream_anon.worker.group_life import Announced, Formed, announce
from stream_anon.worker.ledger.codec import combined
from stream_anon.worker.ledger.ledger import Ledger, Place
from stream_anon.worker.takeover.renderer import GroupRenderer

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "stream_anon/worker").rglob("*.py"))


def trees() -> list[tuple[str, ast.Module]]:
    return [(file.name, ast.parse(file.read_text())) for file in FILES]


def owner(target: ast.expr) -> ast.expr:
    while isinstance(target, ast.Subscript):
        target = target.value
    return target


def test_nobody_writes_the_fields_of_another() -> None:
    found = [
        f"{name}:{node.lineno}"
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del)
        if isinstance(field := owner(node), ast.Attribute)
        if not (isinstance(field.value, ast.Name) and field.value.id == "self")
        if name != "supervisor.py"  # its slots are values of its own
    ]
    assert found == []


def test_nothing_is_anything() -> None:
    found = [
        name for name, tree in trees() for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "Any"
    ]
    assert found == []


def test_sizes_are_known_to_the_budget_alone() -> None:
    """The planner asks it for the price of a row; numbers are written down nowhere else."""
    numbers = {4_095, 4_096, 2.2, 1.25, 120.0}
    found = [
        f"{name}:{node.lineno}"
        for name, tree in trees()
        if name not in ("budget.py", "schedule.py")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value in numbers
    ]
    assert found == []


@pytest.fixture
def formed() -> Formed:
    ref = np.array([[0, 1], [0, 2]])
    rows = Rows(ref, np.zeros(2), np.array(["a", "b"], dtype=object))
    [made] = GroupRenderer(fifo_core(k=2)).fix([Group(rows)], np.zeros(2))  # type: ignore[list-item]
    return made


def test_a_group_is_announced_by_the_ledger_that_names_it(formed: Formed) -> None:
    ledger = Ledger(Place("c", "t", 0), b"", announced=(formed.members,), digest=combined([formed.digest]))
    [announced] = announce([formed], ledger)
    assert announced.records == formed.records
    assert announced.publish().facts is formed.facts
    for other in (
        replace(ledger, announced=()),
        replace(ledger, announced=(formed.members + 1,)),
        replace(ledger, digest=0),
    ):
        with pytest.raises(PrivacyViolation):
            announce([formed], other)
    with pytest.raises(PrivacyViolation):
        Announced(formed, None)


def test_a_record_passes_few_doors_in_the_worker() -> None:
    """Twenty-six functions were given it before; what the core and the engine do is not counted here."""
    command = [sys.executable, str(ROOT / "tests/docs/doors.py"), "--list", "run"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    lines = done.stdout.splitlines()
    assert loads(lines[0])["way"] == "run"
    doors = [line.strip() for line in lines if line.startswith("  worker/")]
    assert 10 < len(doors) <= 17, doors
    assert sum("loop.py" in door for door in doors) <= 2
