"""Measures of a whole table, worked out by hand on a table small enough to see."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stream_anon.core.hierarchy import Interval, Tree, branch
from stream_anon.core.loss import personalized, table
from stream_anon.core.loss.sensitive import sensitive_loss

NATIONS = Tree(branch("*", {"north": ["no", "se"], "south": ["it", "es", "gr"]}))
AGES = Interval(0, 100)
ROWS = [(20, "no"), (30, "se"), (50, "it"), (50, "it"), (90, "gr"), (10, "no")]
QI = np.array([(age, NATIONS.encode([nation])[0][0]) for age, nation in ROWS])


def partition(*classes: tuple[int, ...]) -> table.Partition:
    return table.Partition(QI, [np.array(index) for index in classes], [AGES, NATIONS])


TWO = partition((0, 1), (2, 3, 4))  # row 5 is suppressed

MEASURES = [
    # remark, measured, by hand
    ("NCP: (0.1 + 0.4) x 2, (0.4 + 0.6) x 3, a suppressed row loses both cells", table.ncp(TWO), 1.0 + 3.0 + 2.0),
    ("NCP with weights", table.ncp(TWO, [1, 0]), 0.2 + 1.2 + 1.0),
    ("NCP per cell", table.ncp_per_cell(TWO), 6.0 / 12),
    ("discernibility: 4 + 9 + 1 suppressed x 6", table.discernibility(TWO), 19),
    ("average class size", table.average_class_size(TWO), 2.5),
    ("no class, no size", table.average_class_size(partition()), 0.0),
    ("cells changed: two cells of five rows, and the suppressed row's", table.cells_changed(TWO), 12),
    ("an exact class changes nothing", table.cells_changed(partition((2, 3))), 8),
    ("diameter: rows 2 and 4 differ by 0.4 + 0.6", table.diameter(TWO), 1.0),
    ("everything suppressed", table.ncp(partition()), 12.0),
    ("one class of all: (0.8 + 1) x 6", table.ncp(partition((0, 1, 2, 3, 4, 5))), 10.8),
]


@pytest.mark.parametrize(("measured", "expected"), [c[1:] for c in MEASURES], ids=[c[0] for c in MEASURES])
def test_measures(measured: float, expected: float) -> None:
    assert measured == pytest.approx(expected)


def test_classification_metric() -> None:
    """One of two and one of three differ from their class's majority; the suppressed row counts as wrong."""
    assert table.classification_metric(TWO, np.array([0, 1, 1, 1, 0, 0])) == pytest.approx(3 / 6)


def test_divergence() -> None:
    """Two rows spread over 11 ages x 2 nations, three over 41 ages x 3 nations; rows 2 and 3 are one point."""
    expected = sum(
        share * math.log(share / density)
        for share, density in [
            (1 / 5, (2 / 5) / (11 * 2)),
            (1 / 5, (2 / 5) / (11 * 2)),
            (2 / 5, (3 / 5) / (41 * 3)),
            (1 / 5, (3 / 5) / (41 * 3)),
        ]
    )
    assert table.kl_divergence(TWO) == pytest.approx(expected)
    assert table.kl_divergence(partition((0,), (1,), (2, 3), (4,), (5,))) == pytest.approx(0.0)


def test_overlapping_boxes_share_their_mass() -> None:
    """Two classes with the same box are one class to a reader."""
    rows = np.array([[0], [9], [0], [9]])
    apart = table.Partition(rows, [np.array([0, 1]), np.array([2, 3])], [Interval(0, 9)])
    together = table.Partition(rows, [np.arange(4)], [Interval(0, 9)])
    assert table.kl_divergence(apart) == pytest.approx(table.kl_divergence(together)) == pytest.approx(math.log(5))


DEEP = Tree(branch("*", {"eu": {"north": ["no", "se"], "south": ["it"]}, "am": {"latin": ["pe"]}}))

HEIGHTS = [
    # remark, values, ages, loss: people x (width / 100 + height / 3)
    ("one row", ["no"], [20], 0.0),
    ("below one parent", ["no", "se"], [20, 20], 2 * (1 / 3)),
    ("two layers", ["no", "it"], [20, 30], 2 * (0.1 + 2 / 3)),
    ("everything", ["no", "pe", "it"], [0, 100, 50], 3 * (1.0 + 1.0)),
]


@pytest.mark.parametrize(("values", "ages", "expected"), [c[1:] for c in HEIGHTS], ids=[c[0] for c in HEIGHTS])
def test_loss_by_heights(values: list[str], ages: list[int], expected: float) -> None:
    qi = np.stack([np.array(ages), DEEP.encode(values)[0]], axis=1)
    assert personalized.class_loss(qi, [AGES, DEEP]) == pytest.approx(expected)
    assert personalized.total_loss(qi, [np.arange(len(qi))], [AGES, DEEP]) == pytest.approx(expected)


def test_loss_of_raised_values() -> None:
    losses = {label: sensitive_loss(NATIONS, NATIONS.labels.index(label)) for label in ("gr", "north", "south", "*")}
    assert losses == {"gr": 0.0, "north": 0.25, "south": 0.5, "*": 1.0}
