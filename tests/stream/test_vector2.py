"""The worked figure of the CAIL rounds, row by row: its distances, its two published groups, the two rows left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoder
from stream_anon.core.gate import Reason
from stream_anon.core.hierarchy import Hierarchy, Tree
from stream_anon.core.loss.cail import cail_distance
from stream_anon.core.schema import Schema
from stream_anon.policy import load
from stream_anon.stream import Engine, Outcome, build

VALUES = "bcdehacf"
TREE: dict[str, Any] = {"N": {"L": {"I": ["a", "b"], "J": ["c", "d"]}, "M": {"K": ["e", "f", "g"], "h": None}}}

DISTANCES = [
    # row, the clusters open when it arrives (row numbers), the distance to each, what happens
    (1, {}, {}, "opens A"),
    (2, {"A": [1]}, {"A": 6}, "opens B"),
    (3, {"A": [1], "B": [2]}, {"A": 6, "B": 2}, "joins B"),
    (4, {"A": [1], "B": [2, 3]}, {"A": 13, "B": 24}, "opens C"),
    (5, {"A": [1], "B": [2, 3], "C": [4]}, {"A": 13, "B": 24, "C": 5}, "opens D"),
    (6, {"A": [1], "B": [2, 3], "C": [4], "D": [5]}, {"A": 2, "B": 10, "C": 13, "D": 13}, "joins A"),
    (7, {"A": [1, 6], "B": [2, 3], "C": [4], "D": [5]}, {"A": 10, "B": 2, "C": 13, "D": 13}, "joins B, which leaves"),
    (8, {"A": [1, 6], "C": [4], "D": [5]}, {"A": 24, "C": 3, "D": 5}, "joins C; C and D leave"),
]


def schema(folder: Path, on_deadline: str = "hold") -> Schema:
    policy = {
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
        "stream": {"max_delay": {"records": 7}, "on_deadline": on_deadline},
        "algorithm": {
            "name": "cail",
            "clusters": "standing",
            "threshold": 4,
            "completion": "merge",
            "loss": "descendants",
        },
    }
    path = folder / "policy.yaml"
    path.write_text(json.dumps(policy), encoding="utf-8")
    return Schema.compile(load(path, {}))


def rows(of: Schema) -> Batch:
    """Rows 1 to 8; a row's offset is its number."""
    payloads = [
        json.dumps({"who": f"person {i}", "value": value, "note": i}).encode() for i, value in enumerate(VALUES, 1)
    ]
    ref = np.array([[0, number] for number in range(1, 9)], dtype=np.int64)
    encoded = Encoder(of).encode(payloads, ref, np.zeros(8))
    assert not encoded.rejections
    return encoded.batch


def push(engine: Engine, batch: Batch, number: int) -> Outcome:
    return engine.push(batch.take([number - 1]), float(number))


def members(outcome: Outcome) -> list[tuple[tuple[Any, ...], list[int], Reason]]:
    return [(group.labels, sorted(group.rows.ref[:, 1].tolist()), group.reason) for group in outcome.groups]


def counted(of: Schema) -> list[Hierarchy]:
    return of.counted("descendants")[1]


def test_the_root_counts_thirteen_descendants(tmp_path: Path) -> None:
    [tree] = counted(schema(tmp_path))
    assert isinstance(tree, Tree)
    assert tree.price[-1] == 13.0


@pytest.mark.parametrize(("row", "clusters", "expected"), [d[:3] for d in DISTANCES], ids=[d[3] for d in DISTANCES])
def test_distances_of_the_figure(
    tmp_path: Path, row: int, clusters: dict[str, list[int]], expected: dict[str, int]
) -> None:
    of = schema(tmp_path)
    qi = rows(of).qi
    for name, numbers in clusters.items():
        others = qi[[number - 1 for number in numbers]]
        assert cail_distance(qi[row - 1], others, counted(of)) == pytest.approx(expected[name]), name
    assert set(clusters) == set(expected)


def test_the_figure_row_by_row(tmp_path: Path) -> None:
    """Nothing leaves before row 7; J leaves when it is full, M when row 1 is due."""
    of = schema(tmp_path)
    engine, batch = build(of), rows(of)
    left = {number: members(push(engine, batch, number)) for number in range(1, 9)}
    assert {number: groups for number, groups in left.items() if groups} == {
        7: [(("J",), [2, 3, 7], Reason.READY)],
        8: [(("M",), [4, 5, 8], Reason.DEADLINE)],
    }
    assert len(engine) == 2


@pytest.mark.parametrize("sizes", [[8], [5, 3], [3, 4, 1]], ids=["one batch", "two rounds", "three rounds"])
def test_the_figure_in_batches(tmp_path: Path, sizes: list[int]) -> None:
    """A round is one batch of arrivals; the groups are the same."""
    of = schema(tmp_path)
    engine, batch = build(of), rows(of)
    groups, place = [], 0
    for size in sizes:
        groups += members(engine.push(batch.take(slice(place, place + size)), 0.0))
        place += size
    assert groups == [(("J",), [2, 3, 7], Reason.READY), (("M",), [4, 5, 8], Reason.DEADLINE)]


LEFT = [
    # remark, on_deadline, suppressed with row 8, inside afterwards
    ("held back, both rows stay", "hold", [], [1, 6]),
    ("suppressed, the row that is due goes and the other waits for its own deadline", "suppress", [1], [6]),
]


@pytest.mark.parametrize(("on_deadline", "suppressed", "inside"), [c[1:] for c in LEFT], ids=[c[0] for c in LEFT])
def test_the_two_rows_left(tmp_path: Path, on_deadline: str, suppressed: list[int], inside: list[int]) -> None:
    of = schema(tmp_path, on_deadline)
    engine, batch = build(of), rows(of)
    outcomes = [push(engine, batch, number) for number in range(1, 9)]
    assert [outcome.suppressed for outcome in outcomes[:7]] == [None] * 7
    gone = outcomes[7].suppressed
    assert (gone.ref[:, 1].tolist() if gone is not None else []) == suppressed
    assert sorted(engine.remove(batch.ref).ref[:, 1].tolist()) == inside
