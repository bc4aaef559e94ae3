"""Measures of classes, worked out by hand; those of parts add up to those of the whole."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest

from stream_anon.core.hierarchy import Calendar, Hierarchy, Interval, Ints, Leaves, Prefix, Tree, ValueSet, branch
from stream_anon.core.hierarchy.cover import covered
from stream_anon.core.loss import table
from stream_anon.core.loss.classes import MOST_POINTS, Classes, ClassMeasures, ClassSums
from stream_anon.core.loss.columns import bins_of

NATIONS = Tree(branch("*", {"north": ["no", "se"], "south": ["it", "es", "gr"]}))
AGES = Interval(0, 100)
ROWS = [(20, "no"), (30, "se"), (50, "it"), (50, "it"), (90, "gr"), (10, "no")]
QI = np.array([(age, NATIONS.encode([nation])[0][0]) for age, nation in ROWS])
ILL = np.array([[1], [2], [1], [1], [2], [1]])
BOTH = [("age", AGES), ("nation", NATIONS)]


def classes_of(qi: Ints, ill: Ints, hierarchies: list[Hierarchy], *members: list[int]) -> Classes:
    order = np.concatenate([np.array(index) for index in members])
    starts = np.cumsum([0, *map(len, members)])
    rows = qi[order]
    low, high = np.minimum.reduceat(rows, starts[:-1]), np.maximum.reduceat(rows, starts[:-1])
    losses = [
        np.array([h.loss_of(rows[a:b, q]) for a, b in pairwise(starts)])
        if isinstance(h, ValueSet)
        else h.loss(low[:, q], high[:, q])
        for q, h in enumerate(hierarchies)
    ]
    return Classes(rows, ill[order], starts.tolist(), low, high, np.stack(losses, axis=1))


def two() -> ClassMeasures:
    sums = ClassSums(BOTH, ["ill"], bins_of(QI))
    sums.add(classes_of(QI, ILL, [AGES, NATIONS], [0, 1], [2, 3, 4]))
    sums.suppress(1)
    return sums.measures(k=2)


def test_by_hand() -> None:
    """Two rows in 11 ages and 2 nations, three in 41 ages and 3 nations; the sixth row is suppressed."""
    found = two()
    assert found.average_class_size == pytest.approx(2.5 / 2)
    assert found.discernibility == pytest.approx((4 + 9 + 6) / 6)
    assert found.classification == {"ill": pytest.approx((1 + 1 + 1) / 6)}
    assert found.hamming == pytest.approx(1.0)
    assert found.bits == pytest.approx((2 * math.log2(22) + 3 * math.log2(123)) / 5)
    shares = [(1 / 5, 2 / 5 / 22), (1 / 5, 2 / 5 / 22), (2 / 5, 3 / 5 / 123), (1 / 5, 3 / 5 / 123)]
    assert found.kl_divergence == pytest.approx(sum(p * math.log(p / even) for p, even in shares))
    assert found.diameter == pytest.approx(0.4 + 0.6)
    # 2/11 of a class of two leave the bin of 20 for that of 30, and 3 x 40/41 instead of 2 are in that of 50
    assert found.columns["age"].distribution == pytest.approx((20 / 11 - 1 + 120 / 41 - 2) / 5)
    assert found.columns["nation"].distribution == pytest.approx(0.0)
    json.dumps(found.data())


def test_exact_classes_lose_nothing() -> None:
    sums = ClassSums(BOTH, ["ill"], bins_of(QI))
    sums.add(classes_of(QI, ILL, [AGES, NATIONS], [2, 3]))
    found = sums.measures(k=2)
    zero = (found.hamming, found.bits, found.kl_divergence, found.diameter, found.classification["ill"])
    assert zero == pytest.approx((0, 0, 0, 0, 0))
    assert [column.distribution for column in found.columns.values()] == [0, 0]


def test_correlations() -> None:
    """Near rows together keep what belongs together; far ones lose it."""
    qi, none = np.array([[0, 0], [1, 1], [8, 8], [9, 9]]), np.empty((4, 0), dtype=np.int64)
    line = Interval(0, 9)
    for members, changed in (([[0, 1], [2, 3]], 0.0), ([[0, 3], [1, 2]], 1.0)):
        sums = ClassSums([("a", line), ("b", line)], [], bins_of(qi))
        sums.add(classes_of(qi, none, [line, line], *members))
        assert [column.correlation for column in sums.measures(2).columns.values()] == pytest.approx([changed] * 2)


def test_sets_cover_their_members_alone() -> None:
    values = ValueSet(["a", "b", "c", "d", "e", "f", "g", "h"])
    qi, none = np.array([[0], [7], [7], [3]]), np.empty((4, 0), dtype=np.int64)
    sums = ClassSums([("set", values)], [], bins_of(qi))
    sums.add(classes_of(qi, none, [values], [0, 1], [2], [3]))
    found = sums.measures(1)
    assert found.bits == pytest.approx(2 * 1 / 4)
    assert (found.hamming, found.columns["set"].distribution) == pytest.approx((0.5, 0.0))


def test_parts_add_up() -> None:
    """Figures of two parts, sent as JSON, give the measures of the whole: to the last digit but for rounding."""
    rng = np.random.default_rng(4)
    qi = np.stack([rng.integers(0, 100, 400), rng.integers(0, 5, 400)], axis=1)
    ill, order = rng.integers(0, 6, (400, 1)), np.lexsort((qi[:, 0], qi[:, 1])).tolist()
    members = [order[i : i + 8] for i in range(0, 400, 8)]
    bins = bins_of(qi)
    whole, parts = ClassSums(BOTH, ["ill"], bins), ClassSums(BOTH, ["ill"], bins)
    whole.add(classes_of(qi, ill, [AGES, NATIONS], *members))
    whole.suppress(3)
    for own, suppressed in ((members[:20], 1), (members[20:], 2)):
        part = ClassSums(BOTH, ["ill"], bins)
        part.add(classes_of(qi, ill, [AGES, NATIONS], *own))
        part.suppress(suppressed)
        parts.merge(json.loads(json.dumps(part.figures())))
    assert parts.measures(5).data() == whole.measures(5).data()
    wrong = sum(8 - np.unique(ill[index], return_counts=True)[1].max() for index in members)
    assert whole.measures(5).classification["ill"] == pytest.approx((wrong + 3) / 403)


def test_against_the_definitions() -> None:
    """Where labels do not overlap the divergence is that of the whole table; else it is never less."""
    rng = np.random.default_rng(5)
    qi, none = rng.integers(0, 60, (300, 1)), np.empty((300, 0), dtype=np.int64)
    order = np.argsort(qi[:, 0], kind="stable")
    apart = [np.flatnonzero(qi[:, 0] // 6 == cell).tolist() for cell in range(10)]
    crossed = [order[i::20].tolist() for i in range(20)]
    for members, equal in ((apart, True), (crossed, False)):
        sums = ClassSums([("age", AGES)], [], bins_of(qi))
        sums.add(classes_of(qi, none, [AGES], *members))
        found, judged = sums.measures(1), table.Partition(qi, [np.array(index) for index in members], [AGES])
        divergence = table.kl_divergence(judged)
        assert found.kl_divergence == pytest.approx(divergence) if equal else found.kl_divergence > divergence
        assert found.diameter == pytest.approx(table.diameter(judged))
        assert found.hamming == pytest.approx(table.cells_changed(judged) / 300)


def test_the_box_stands_for_a_class_of_many_points() -> None:
    qi = np.arange(MOST_POINTS + 1).reshape(-1, 1)
    sums = ClassSums([("n", Interval(0, 2 * MOST_POINTS))], [], bins_of(qi))
    sums.add(classes_of(qi, np.empty((len(qi), 0), dtype=np.int64), [Interval(0, 2 * MOST_POINTS)], qi[:, 0].tolist()))
    assert sums.measures(1).diameter == pytest.approx(0.5)


SPANS = [
    ("exact numbers", Interval(0, 99), (31, 33), (31, 33)),
    ("the first grid that holds both", Interval(0, 99, snap=(5, 10)), (31, 33), (30, 34)),
    ("the coarsest grid, within the range", Interval(3, 97, snap=(5, 10)), (4, 96), (3, 97)),
    ("a common beginning", Prefix(3), (211, 219), (210, 219)),
    ("nothing in common", Prefix(3), (211, 911), (0, 999)),
    ("a code alone", Prefix(3), (211, 211), (211, 211)),
    ("missing alone", Prefix(3, leaves=Leaves(missing=True)), (1000, 1000), (1000, 1000)),
    ("mixed with what is missing", Interval(0, 9, leaves=Leaves(missing=True)), (4, 10), (0, 10)),
    ("a common node", NATIONS, (2, 3), (2, 4)),
    ("a month of five weeks", Calendar(["day", "month"]), (36, 50), (35, 69)),
]


@pytest.mark.parametrize(("hierarchy", "ends", "expected"), [s[1:] for s in SPANS], ids=[s[0] for s in SPANS])
def test_covered(hierarchy: Hierarchy, ends: tuple[int, int], expected: tuple[int, int]) -> None:
    left, right = covered(hierarchy, np.array([ends[0]]), np.array([ends[1]]))
    assert (left.tolist(), right.tolist()) == ([expected[0]], [expected[1]])
