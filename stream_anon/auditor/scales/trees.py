"""Trees of named values as the auditor reads them: inline, flat, or in ARX's CSV form."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from stream_anon.auditor.scales.base import MISSING, OUTSIDE, UNKNOWN, Absent, Reading, Scale, Verdict, labelled
from stream_anon.errors import Diagnostic, PolicyError

Branches = dict[str, Any]
"""A nested mapping; a leaf maps to an empty one."""


class TreeScale(Scale):
    """A scale of named values: leaves are numbered in tree order, so that every node is a range of them.

    >>> tree = TreeScale({"any": {"lung": {"flu": {}, "cough": {}}, "gut": {"colitis": {}}}}, Absent())
    >>> tree.read("lung"), tree.place("colitis"), tree.read("heart")
    (Reading(low=0.0, high=1.0, least=0.6666666666666666, most=0.6666666666666666), 2.0, 'outside-hierarchy')
    """

    def __init__(self, branches: Branches, absent: Absent) -> None:
        [(root, below)] = branches.items()
        if not below:
            root, below = "*", {root: {}}
        extra = [MISSING] * absent.missing + [UNKNOWN] * absent.unknown
        self._absent = absent
        self.leaves: list[str] = []
        self.spans: dict[str, list[tuple[int, int]]] = {}
        self._walk(root.partition("\0")[0], {**below, **{label: {} for label in extra}})
        self.size = len(self.leaves)
        self._places = {label: float(i) for i, label in enumerate(self.leaves)}

    def _walk(self, label: str, below: Branches) -> None:
        first = len(self.leaves)
        if not below:
            self.leaves.append(label)
        for child, deeper in below.items():
            self._walk(child.partition("\0")[0], deeper)
        self.spans.setdefault(label, []).append((first, len(self.leaves) - 1))

    @classmethod
    def of(cls, attribute: dict[str, Any], absent: Absent, folder: Path) -> Self:
        """Read the scale from its attribute's entry in the policy: that is for the kinds of trees."""
        raise NotImplementedError

    def read(self, label: Any) -> Verdict:
        """Interpret a label as the leaves below its node; if several nodes share it, as all that it may mean."""
        spans = self.spans.get(label) if isinstance(label, str) else None
        if spans is None:
            return OUTSIDE
        losses = [(last - first + 1) / self.size for first, last in spans]
        leaf = label in self._places
        return Reading(
            float(min(first for first, _ in spans)),
            float(max(last for _, last in spans)),
            0.0 if leaf else min(losses),
            0.0 if leaf and len(spans) == 1 else max(losses),
        )

    def place(self, value: Any) -> float:
        """Return the number of the leaf."""
        return labelled(value, self._places, self._absent)

    def guarded(self, leaf: int, guard: str) -> tuple[int, int] | None:
        """Return the widest node called `guard` above a leaf, as the leaves below it."""
        above = [span for span in self.spans.get(guard, ()) if span[0] <= leaf <= span[1]]
        return max(above, key=lambda span: span[1] - span[0], default=None)

    @property
    def below_root(self) -> list[tuple[int, int]]:
        """The leaves below every node except those that cover all of them."""
        return [span for spans in self.spans.values() for span in spans if span[1] - span[0] + 1 < self.size]

    @property
    def inner(self) -> bool:
        """Whether there are nodes between the leaves and the root."""
        return any(first < last for first, last in self.below_root)

    def span(self, label: str) -> tuple[int, int]:
        """Return the leaves that a published value may stand for: itself, if it is a leaf."""
        if label in self._places:
            return int(self._places[label]), int(self._places[label])
        return max(self.spans[label], key=lambda span: span[1] - span[0])


class FlatScale(TreeScale):
    """A tree with all values directly below one root."""

    kind: ClassVar[str] = "flat"

    @classmethod
    def of(cls, attribute: dict[str, Any], absent: Absent, folder: Path) -> Self:
        """Read the scale from its attribute's entry in the policy."""
        return cls({"*": {str(value): {} for value in attribute["hierarchy"]["values"]}}, absent)


class InlineScale(TreeScale):
    """A tree written in the policy."""

    kind: ClassVar[str] = "tree"

    @classmethod
    def of(cls, attribute: dict[str, Any], absent: Absent, folder: Path) -> Self:
        """Read the scale from its attribute's entry in the policy."""
        [(root, below)] = attribute["hierarchy"]["tree"].items()
        return cls(inline(root, below), absent)


class CsvScale(TreeScale):
    """A tree in ARX's CSV form, in a file beside the policy."""

    kind: ClassVar[str] = "csv"

    @classmethod
    def of(cls, attribute: dict[str, Any], absent: Absent, folder: Path) -> Self:
        """Read the scale from its attribute's entry in the policy."""
        shape = attribute["hierarchy"]
        return cls(from_csv(folder / shape["path"], shape.get("delimiter", ";")), absent)


def inline(node: str, below: Mapping[str, Any] | Sequence[str] | None) -> Branches:
    """Return the branches of a tree in the policy: mappings, lists of leaves, or nothing below a leaf."""
    if isinstance(below, Mapping):
        return {node: {k: v for child, deeper in below.items() for k, v in inline(str(child), deeper).items()}}
    return {node: {str(leaf): {} for leaf in below or ()}}


def from_csv(path: Path, delimiter: str) -> Branches:
    """Read the branches of a CSV file, one line per leaf, the root last. Equal labels of two levels are two nodes."""
    try:
        lines = list(csv.reader(path.read_text("utf-8-sig").splitlines(), delimiter=delimiter))
    except (OSError, UnicodeDecodeError, csv.Error):
        raise _broken(path, "cannot be read as a table in UTF-8") from None
    lines = [line for line in lines if line]
    if not lines or len({len(line) for line in lines}) > 1 or len({line[-1] for line in lines}) > 1:
        raise _broken(path, "lines of different lengths, or several roots")
    branches: Branches = {}
    for line in lines:
        below = branches
        for level, label in enumerate(reversed(line)):
            below = below.setdefault(f"{label}\0{level}", {})
    return branches


def _broken(path: Path, reason: str) -> PolicyError:
    return PolicyError(
        [Diagnostic("broken-hierarchy", reason, str(path), hint="run stream-anon check to see the line")]
    )
