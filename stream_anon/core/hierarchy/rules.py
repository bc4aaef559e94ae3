"""What must hold inside one hierarchy, and between it and its attribute's type; opens no file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import get_args

from stream_anon.core.hierarchy.settings import (
    Branch,
    CalendarHierarchy,
    FlatHierarchy,
    HierarchySettings,
    IntervalHierarchy,
    SetHierarchy,
    TreeHierarchy,
    Unit,
)
from stream_anon.errors import Problem

Path = tuple[str | int, ...]

_UNITS = get_args(Unit)
_TYPES = {"interval": ("integer", "number"), "calendar": ("timestamp",)}
_KINDS = {
    "category": "flat, tree, csv, prefix or set",
    "integer": "interval",
    "number": "interval",
    "timestamp": "calendar",
}

MAX_STEPS = 1e15
"""Positions are whole numbers of steps; beyond 2^53 (9e15) a float no longer tells neighbours apart."""

FEW_STEPS = 50
"""Up to so many, values are common enough that an end is nobody's in particular: a grade, a floor, a count."""

_CELLS = 20
"""Cells of the finer of two proposed grids: ages fall into fives."""

_WHOLE = 1e-9
"""How far a quotient of two grids may be from a whole number: 0.3 / 0.1 is not exactly 3 in binary."""


def hierarchy_problems(attribute: Path, type_: str, hierarchy: HierarchySettings) -> Iterator[Problem]:
    """Every rule that the hierarchy of the attribute at this path breaks."""
    path = (*attribute, "hierarchy")
    if type_ not in _TYPES.get(hierarchy.kind, ("category",)):
        message = f"a hierarchy of kind {hierarchy.kind} does not fit the type {type_}"
        yield Problem((*path, "kind"), "kind-and-type", message, f"for {type_}: {_KINDS[type_]}")
        return
    if isinstance(hierarchy, IntervalHierarchy):
        yield from _interval(path, type_, hierarchy)
    elif isinstance(hierarchy, CalendarHierarchy):
        yield from _calendar(path, hierarchy)
    elif isinstance(hierarchy, FlatHierarchy | SetHierarchy):
        yield from _repeated((*path, "values"), hierarchy.values)
    elif isinstance(hierarchy, TreeHierarchy):
        yield from _tree((*path, "tree"), hierarchy)


def _interval(path: Path, type_: str, hierarchy: IntervalHierarchy) -> Iterator[Problem]:
    if hierarchy.range is not None and hierarchy.scale is not None:
        hint = "keep range for a closed domain, scale for an open one"
        yield Problem((*path, "scale"), "either-or", '"range" and "scale" exclude each other', hint)
    if hierarchy.range is None and hierarchy.scale is None:
        hint = 'add "range: [low, high]"'
        yield Problem((*path, "range"), "missing-key", 'one of "range" and "scale" is needed', hint)
    if hierarchy.range is not None and hierarchy.range[0] >= hierarchy.range[1]:
        yield Problem((*path, "range"), "not-increasing", "the range must go from low to high", "swap its ends")
    if type_ == "number" and hierarchy.step is None:
        hint = 'add "step: 0.1", the finest difference that is told apart'
        yield Problem((*path, "step"), "missing-key", "numbers need a step", hint)
    if type_ == "integer":
        yield from _whole_numbers(path, hierarchy)
    step = 1.0 if type_ == "integer" else hierarchy.step
    yield from _snap((*path, "snap"), hierarchy.snap or [], step)
    yield from _size(path, hierarchy, step or 1.0)


def exact_ends(hierarchy: HierarchySettings) -> bool:
    """Whether the ends of published intervals can be somebody's exact values: many steps, and no grid coarser than one.

    A calendar publishes whole units, and few steps are a grid by themselves.
    """
    if not isinstance(hierarchy, IntervalHierarchy) or not (hierarchy.range or hierarchy.scale):
        return False
    if hierarchy.snap and hierarchy.snap[-1] > _step(hierarchy) * (1 + _WHOLE):
        return False
    return hierarchy.range is None or _width(hierarchy) > FEW_STEPS


def proposed_grids(hierarchy: IntervalHierarchy) -> str:
    """Two grids that divide the domain into some twenty and some four to ten cells, as they are written in a policy.

    >>> proposed_grids(IntervalHierarchy(kind="interval", range=(0, 99))), proposed_grids(
    ...     IntervalHierarchy(kind="interval", range=(0, 9), step=0.05)
    ... )
    ('[5, 10]', '[0.5, 2.5]')
    """
    cells = _width(hierarchy) / _CELLS
    power = 10 ** max(math.floor(math.log10(cells)), 0) if cells > 0 else 1
    fine = next(n * power for n in (1, 2, 5, 10) if n * power >= cells * 0.999)
    fine, coarse = (2, 10) if fine == 1 else (fine, fine * (2 if str(fine)[0] == "5" else 5))
    return "[" + ", ".join(f"{round(grid * _step(hierarchy), 12):.15g}" for grid in (fine, coarse)) + "]"


def missing_grids(attribute: Path, hierarchy: HierarchySettings) -> Iterator[Problem]:
    """Find quasi-identifiers with many values that have no grids and do not say so."""
    if isinstance(hierarchy, IntervalHierarchy) and hierarchy.snap != [] and exact_ends(hierarchy):
        message = "without a grid the ends of published intervals are somebody's exact values"
        hint = f'add "snap: {proposed_grids(hierarchy)}", or say "snap: none" if exact ends may be published'
        yield Problem((*attribute, "hierarchy", "snap"), "missing-snap", message, hint)


def _step(hierarchy: IntervalHierarchy) -> float:
    return hierarchy.step or 1.0


def _width(hierarchy: IntervalHierarchy) -> float:
    """Return the domain in steps."""
    low, high = hierarchy.range or (0.0, hierarchy.scale or 0.0)
    return (high - low) / _step(hierarchy)


def _whole_numbers(path: Path, hierarchy: IntervalHierarchy) -> Iterator[Problem]:
    if hierarchy.step is not None:
        hint = "remove step, or say type: number"
        yield Problem((*path, "step"), "unused-key", "integers are told apart by 1", hint)
    if hierarchy.range is not None and not all(end.is_integer() for end in hierarchy.range):
        yield Problem((*path, "range"), "bad-value", "the range of integers has whole ends", "or say type: number")


def _snap(path: Path, snap: list[float], step: float | None) -> Iterator[Problem]:
    if snap and step is not None and not _multiple(snap[0], step):
        message = "a grid must be a multiple of the step" if step != 1 else "a grid must be a whole number"
        yield Problem((*path, 0), "not-a-multiple", message, f"a multiple of {step:g}")
    for index, (finer, coarser) in enumerate(pairwise(snap), start=1):
        if coarser <= finer:
            yield Problem((*path, index), "not-increasing", "grids go from fine to coarse", f"above {finer:g}")
        elif not _multiple(coarser, finer):
            hint = f"a multiple of {finer:g}"
            message = "cells of a finer grid must fit into this one"
            yield Problem((*path, index), "not-a-multiple", message, hint)


def _size(path: Path, hierarchy: IntervalHierarchy, step: float) -> Iterator[Problem]:
    numbers = {"range": hierarchy.range or (), "scale": (hierarchy.scale or 0.0,), "snap": hierarchy.snap or ()}
    for key, values in numbers.items():
        if any(abs(value) > MAX_STEPS * step for value in values):
            message = f"{key} is more than {MAX_STEPS:.0e} steps wide or away from 0"
            yield Problem((*path, key), "out-of-range", message, "use a coarser step, or smaller numbers")


def _multiple(coarse: float, fine: float) -> bool:
    quotient = coarse / fine
    return quotient >= 1 - _WHOLE and abs(quotient - round(quotient)) <= _WHOLE * quotient


def _calendar(path: Path, hierarchy: CalendarHierarchy) -> Iterator[Problem]:
    for index, (finer, coarser) in enumerate(pairwise(hierarchy.levels), start=1):
        if _UNITS.index(coarser) <= _UNITS.index(finer):
            hint = f"in this order: {', '.join(_UNITS)}"
            yield Problem((*path, "levels", index), "not-increasing", "levels go from fine to coarse", hint)


def _repeated(path: Path, values: list[str]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield Problem((*path, index), "duplicate-value", "this value is listed twice", "remove one of them")
        seen.add(value)


def _tree(path: Path, hierarchy: TreeHierarchy) -> Iterator[Problem]:
    seen: set[str] = set()

    def visit(at: Path, branch: Branch) -> Iterator[Problem]:
        if branch is None:
            return
        if not branch:
            yield Problem(at, "no-children", "this node has no leaf below it", "list its leaves, or make it a leaf")
        labels = branch.items() if isinstance(branch, dict) else enumerate(branch)
        for key, below in labels:
            label = str(key) if isinstance(branch, dict) else str(below)
            if label in seen:
                hint = "give each node a name of its own"
                yield Problem((*at, key), "duplicate-value", "another node of the tree has this name", hint)
            seen.add(label)
            if isinstance(branch, dict):
                yield from visit((*at, key), branch[str(key)])

    yield from visit(path, hierarchy.tree)
