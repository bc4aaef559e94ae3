"""Hierarchies against the definition, and kernels against hierarchies, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stream_anon.core.hierarchy import (
    Calendar,
    Hierarchy,
    Interval,
    Leaves,
    Prefix,
    Tree,
    Trouble,
    ValueSet,
    branch,
)
from stream_anon.core.kernels import SHORT
from stream_anon.core.loss.table import Partition, ncp
from stream_anon.testing.checks.hierarchies import (
    covers_what_it_stands_for,
    encodes_alike,
    kernels_agree,
    loses_more_the_wider,
)

BOTH = Leaves(missing=True, unknown=True)
SMALL = branch("*", {"north": ["no", "se", "fi"], "south": {"west": ["pt", "es"], "east": ["gr"]}})
NUMBERS = st.integers(-5, 130)
INSTANTS = st.datetimes().map(lambda instant: instant.isoformat())


def large_tree(leaves: Leaves = Leaves()) -> Tree:  # noqa: B008
    return Tree(branch("*", {f"{i}*": [f"{i}{j:02d}" for j in range(100)] for i in range(10)}), leaves)


KINDS: list[tuple[str, Hierarchy, st.SearchStrategy[Any]]] = [
    # remark, hierarchy, values that it may or may not know
    ("a small tree", Tree(SMALL), st.sampled_from(["no", "se", "fi", "pt", "es", "gr"])),
    ("a small tree with extra leaves", Tree(SMALL, BOTH), st.sampled_from(["no", "es", "gr", "xx", None, 5])),
    ("a large tree", large_tree(), st.integers(0, 999).map("{:03d}".format)),
    ("a large tree with extra leaves", large_tree(BOTH), st.none() | st.integers(0, 1200).map("{:03d}".format)),
    ("numbers that name leaves", Tree(branch("*", ["1", "2", "true"])), st.sampled_from([1, 2, True, "1"])),
    ("integers", Interval(0, 120), NUMBERS),
    ("integers with extra leaves", Interval(0, 120, leaves=BOTH), NUMBERS | st.none()),
    ("integers, missing allowed", Interval(0, 120, leaves=Leaves(missing=True)), NUMBERS | st.none()),
    ("integers on grids", Interval(3, 120, snap=[5, 10, 40]), NUMBERS),
    ("integers on one grid", Interval(-17, 90, snap=[20], leaves=BOTH), NUMBERS | st.none()),
    ("integers without end", Interval(scale=1000), st.integers(-(2**60), 2**60) | st.integers(-2000, 2000)),
    ("integers without end on grids", Interval(scale=1000, snap=[7, 70]), st.integers(-5000, 5000)),
    ("decimals", Interval(0, 2.5, step=0.1), st.floats(-1, 4)),
    ("decimals on grids", Interval(-1.5, 2.5, step=0.25, snap=[0.5, 2], leaves=BOTH), st.none() | st.floats(-3, 4)),
    ("decimals of an odd step", Interval(0, 10, step=0.12345), st.floats(0, 10)),
    ("decimals without end", Interval(step=0.01, scale=10), st.floats()),
    ("a range of one step", Interval(0, 1, step=1), st.floats(0, 1)),
    ("zip codes", Prefix(5), st.from_regex(r"[0-9]{5}", fullmatch=True)),
    ("zip codes with extra leaves", Prefix(3, leaves=BOTH), st.from_regex(r"[0-9]{2,4}", fullmatch=True) | st.none()),
    ("codes of letters", Prefix(4, "alphanumeric"), st.from_regex(r"[0-9A-Za-z]{4}", fullmatch=True)),
    ("the longest codes", Prefix(12, "alphanumeric"), st.from_regex(r"[0-9A-Z]{12}", fullmatch=True)),
    ("instants", Calendar(["second", "minute", "hour", "day", "week", "month", "quarter", "year"]), INSTANTS),
    ("days", Calendar(["day", "year"], leaves=BOTH), INSTANTS | st.none() | st.just("soon")),
    ("Unix times", Calendar(["hour", "week", "quarter"], 1), st.integers(-(10**10), 10**10)),
    ("quarters", Calendar(["quarter"]), INSTANTS),
]


def every_kind(test: Callable[..., None]) -> Callable[..., None]:
    marked = pytest.mark.parametrize(("hierarchy", "values"), [k[1:] for k in KINDS], ids=[k[0] for k in KINDS])
    return marked(given(data=st.data())(settings(max_examples=25, deadline=None)(test)))


def draw_codes(
    hierarchy: Hierarchy, values: st.SearchStrategy[Any], data: st.DataObject
) -> tuple[list[Any], np.ndarray]:
    """Values that have a place, and their places."""
    drawn = data.draw(st.lists(values, min_size=1, max_size=6))
    codes, trouble = hierarchy.encode(drawn)
    placed = np.ones(len(drawn), dtype=bool) if trouble is None else trouble == Trouble.NONE
    assume(placed.any())
    return [value for value, fine in zip(drawn, placed, strict=True) if fine], codes[placed]


@every_kind
def test_kernels_and_hierarchies_agree_to_the_last_bit(
    hierarchy: Hierarchy, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    _, codes = draw_codes(hierarchy, values, data)
    with mock.patch("stream_anon.core.kernels.SHORT", data.draw(st.sampled_from([0, SHORT]))):
        kernels_agree(hierarchy, codes)
    low, high = codes.min(), codes.max()
    table = Partition(np.array([[0, low], [0, high]]), [np.arange(2)], [Interval(0, 9), hierarchy])
    assert ncp(table) == pytest.approx(2 * float(hierarchy.loss(low, high)))


@every_kind
def test_loss_lies_between_nothing_and_everything_and_grows_with_the_stretch(
    hierarchy: Hierarchy, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    _, codes = draw_codes(hierarchy, values, data)
    loses_more_the_wider(hierarchy, codes)


@every_kind
def test_a_published_label_covers_every_value_behind_it(
    hierarchy: Hierarchy, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    drawn, codes = draw_codes(hierarchy, values, data)
    covers_what_it_stands_for(hierarchy, drawn, codes)


@every_kind
def test_encoding_one_by_one_or_together_is_the_same(
    hierarchy: Hierarchy, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    encodes_alike(hierarchy, data.draw(st.lists(values, min_size=1, max_size=8)))


NOT_COVERED = [
    # remark, hierarchy, label, value
    ("another leaf", Tree(SMALL), "no", "se"),
    ("another branch", Tree(SMALL), "north", "gr"),
    ("no value of the tree", Tree(SMALL), "*", "xx"),
    ("below", Interval(0, 120), [20, 29], 19),
    ("above", Interval(0, 120), [20, 29], 30),
    ("missing from numbers", Interval(0, 120, leaves=BOTH), [20, 29], None),
    ("a number where only absences are", Interval(0, 120, leaves=BOTH), None, 25),
    ("another beginning", Prefix(5), "021**", "02239"),
    ("another length", Prefix(5), "02139", "021390"),
    ("missing from codes", Prefix(5, leaves=BOTH), "021**", None),
    ("a code where only missing ones are", Prefix(5, leaves=BOTH), "(missing)", "02139"),
    ("unknown is not missing", Prefix(5, leaves=BOTH), "(missing)", "2139"),
    ("another week", Calendar(["day", "week"]), "2026-03-08/2026-03-14", "2026-03-15"),
    ("another year", Calendar(["day", "year"]), "2026", "2025-12-31T23:59:59"),
    ("a level that is not published", Calendar(["day", "year"]), "2026-03", "2026-03-15"),
    ("no instant", Calendar(["day", "year"], leaves=BOTH), "2026", "soon"),
    ("not in the set", ValueSet(["a", "b", "c"]), ["a", "b"], "c"),
]


@pytest.mark.parametrize(("hierarchy", "label", "value"), [c[1:] for c in NOT_COVERED], ids=[c[0] for c in NOT_COVERED])
def test_labels_cover_nothing_else(hierarchy: Hierarchy, label: Any, value: Any) -> None:
    assert not hierarchy.contains(label, value)


LABELS = [
    # remark, hierarchy, values, label
    ("one value of a tree", Tree(SMALL), ["fi"], "fi"),
    ("siblings", Tree(SMALL), ["pt", "es"], "west"),
    ("cousins", Tree(SMALL), ["pt", "gr"], "south"),
    ("everything", Tree(SMALL), ["no", "gr"], "*"),
    ("only missing ones", Tree(SMALL, BOTH), [None, None], "(missing)"),
    ("missing and known ones", Tree(SMALL, BOTH), [None, "no"], "*"),
    ("missing and unknown ones", Tree(SMALL, BOTH), [None, "xx"], "*"),
    ("one number", Interval(0, 120), [39], [39, 39]),
    ("two numbers", Interval(0, 120), [39, 42], [39, 42]),
    ("one number on a grid", Interval(0, 120, snap=[5]), [39], [35, 39]),
    ("below zero on a grid", Interval(-100, 120, snap=[10]), [-3, -12], [-20, -1]),
    ("a grid cut off by the range", Interval(17, 90, snap=[10]), [17, 90], [17, 90]),
    ("only missing numbers", Interval(0, 120, leaves=BOTH), [None], None),
    ("missing numbers among others", Interval(0, 120, leaves=BOTH), [None, 39], [None, None]),
    ("a decimal", Interval(0, 10, step=0.1), [0.35], [0.3, 0.4]),
    ("decimals on a grid", Interval(0, 10, step=0.1, snap=[0.5]), [0.35, 0.71], [0.0, 1.0]),
    ("the last decimal", Interval(0, 10, step=0.1), [10], [9.9, 10.0]),
    ("one code", Prefix(5), ["02139"], "02139"),
    ("a common beginning", Prefix(5), ["02139", "02238"], "02***"),
    ("nothing in common", Prefix(5), ["02139", "12139"], "*"),
    ("letters of any case", Prefix(3, "alphanumeric"), ["a1B", "A1c"], "A1*"),
    ("missing codes", Prefix(5, leaves=BOTH), [None], "(missing)"),
    ("unknown codes", Prefix(5, leaves=BOTH), ["1", "x"], "(unknown)"),
    ("a second", Calendar(["second", "year"]), ["2026-03-08T14:05:09Z"], "2026-03-08T14:05:09"),
    ("a minute", Calendar(["minute", "year"]), ["2026-03-08T14:05:09Z"], "2026-03-08T14:05"),
    ("an hour", Calendar(["hour", "day"]), ["2026-03-08T14:05:09Z"], "2026-03-08T14"),
    ("a day", Calendar(["hour", "day"]), ["2026-03-08T14:05", "2026-03-08T15:05"], "2026-03-08"),
    ("a week", Calendar(["day", "week"]), ["2026-03-08", "2026-03-14"], "2026-03-08/2026-03-14"),
    ("the fifth week is short", Calendar(["day", "week"]), ["2026-04-29", "2026-04-30"], "2026-04-29/2026-04-30"),
    ("a month", Calendar(["day", "month"]), ["2026-03-08", "2026-03-31"], "2026-03"),
    ("a quarter", Calendar(["day", "quarter"]), ["2026-01-01", "2026-03-31"], "2026-Q1"),
    ("two quarters", Calendar(["day", "quarter"]), ["2026-03-31", "2026-04-01"], "*"),
    ("a year", Calendar(["month", "year"]), ["2026-01-01", "2026-12-31"], "2026"),
    ("long ago", Calendar(["day", "year"]), ["0033-04-03"], "0033-04-03"),
    ("another time zone", Calendar(["hour", "day"]), ["2026-03-08T01:30:00+02:00"], "2026-03-07T23"),
    ("milliseconds", Calendar(["day"]), [1_712_010_112_345], "2024-04-01"),
    ("milliseconds as text", Calendar(["day"]), ["1712010112345"], "2024-04-01"),
    ("a date without dashes", Calendar(["day"]), ["20260308"], "2026-03-08"),
]


@pytest.mark.parametrize(("hierarchy", "values", "label"), [c[1:] for c in LABELS], ids=[c[0] for c in LABELS])
def test_labels(hierarchy: Hierarchy, values: list[Any], label: Any) -> None:
    codes, trouble = hierarchy.encode(values)
    assert trouble is None
    assert hierarchy.label(int(codes.min()), int(codes.max())) == label


def test_a_set_is_published_sorted_and_priced_by_its_share() -> None:
    nations = ValueSet(["China", "India", "Peru", "Chad"])
    codes, _ = nations.encode(["Peru", "Chad", "Peru"])
    assert nations.label_of(codes) == ["Chad", "Peru"]
    assert (nations.loss_of(codes), nations.loss_of(codes[:1])) == (0.5, 0.0)


REFUSED = [
    # remark, hierarchy, value, trouble
    ("missing", Tree(SMALL), None, Trouble.MISSING),
    ("no leaf", Tree(SMALL), "xx", Trouble.UNKNOWN),
    ("an inner node is no value", Tree(SMALL), "north", Trouble.UNKNOWN),
    ("a leaf of absence cannot be claimed", Tree(SMALL, BOTH), "(missing)", Trouble.NONE),
    ("a missing number", Interval(0, 120), None, Trouble.MISSING),
    ("beyond the range", Interval(0, 120), 121, Trouble.UNKNOWN),
    ("beyond 64 bits", Interval(0, 120), 10**30, Trouble.UNKNOWN),
    ("beyond any float", Interval(0, 120), 10**400, Trouble.UNKNOWN),
    ("beyond any float, downwards", Interval(scale=5), -(10**400), Trouble.UNKNOWN),
    ("no number", Interval(0, 1, step=0.1), float("nan"), Trouble.UNKNOWN),
    ("without end", Interval(scale=1, step=0.1), float("inf"), Trouble.UNKNOWN),
    ("too short", Prefix(5), "2139", Trouble.UNKNOWN),
    ("other digits", Prefix(5), "0213٩", Trouble.UNKNOWN),
    ("a sign is no digit", Prefix(5), "-2139", Trouble.UNKNOWN),
    ("no instant", Calendar(["day"]), "soon", Trouble.UNKNOWN),
    ("no such day", Calendar(["day"]), "2026-02-30", Trouble.UNKNOWN),
    ("no finite time", Calendar(["day"]), float("nan"), Trouble.UNKNOWN),
    ("a time beyond all calendars", Calendar(["day"]), 10**400, Trouble.UNKNOWN),
    ("the end of time in another zone", Calendar(["day"]), "9999-12-31T23:59:59-05:00", Trouble.UNKNOWN),
]


@pytest.mark.parametrize(("hierarchy", "value", "trouble"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_what_has_no_place(hierarchy: Hierarchy, value: Any, trouble: Trouble) -> None:
    _, refused = hierarchy.encode([value])
    assert (Trouble.NONE if refused is None else refused[0]) == trouble


def test_the_label_of_an_absence_written_by_hand_is_unknown_not_missing() -> None:
    tree = Tree(SMALL, BOTH)
    missing, unknown = tree.encode([None, "(missing)"])[0].tolist()
    assert (tree.label(missing, missing), tree.label(unknown, unknown)) == ("(missing)", "(unknown)")


GRIDS = [
    # remark, range, grids
    ("ends on the grid", (0, 119), (5, 10)),
    ("ends off the grid", (3, 117), (5, 10, 40)),
    ("negative ends", (-37, 53), (7, 21)),
    ("one grid", (1, 99), (25,)),
]


@pytest.mark.parametrize(("ends", "grids"), [g[1:] for g in GRIDS], ids=[g[0] for g in GRIDS])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_published_ends_lie_on_a_grid_or_are_the_declared_ones(
    ends: tuple[int, int], grids: tuple[int, ...], data: st.DataObject
) -> None:
    interval = Interval(*ends, snap=grids)
    low, high = sorted(data.draw(st.tuples(st.integers(*ends), st.integers(*ends))))
    left, right = interval.label(low, high)
    assert left <= low <= high <= right
    fitting = [g for g in grids if low // g == high // g] or [grids[-1]]
    assert left == max(low // fitting[0] * fitting[0], ends[0])
    assert right == min(high // fitting[0] * fitting[0] + fitting[0] - 1, ends[1])
    inner = [end for end in (left, right + 1) if end not in (ends[0], ends[1] + 1)]
    assert all(end % grids[0] == 0 for end in inner)


SIGNATURES = [
    # remark, two hierarchies that publish or price something differently
    ("another label", Tree(branch("*", ["a", "b"])), Tree(branch("*", ["a", "c"]))),
    ("another order", Tree(branch("*", ["a", "b"])), Tree(branch("*", ["b", "a"]))),
    ("another shape", Tree(branch("*", {"x": ["a"], "y": ["b"]})), Tree(branch("*", {"x": ["a", "b"]}))),
    ("an extra leaf", Tree(SMALL), Tree(SMALL, BOTH)),
    ("another count", Tree(SMALL), Tree(SMALL, counting="subtree")),
    ("a set", ValueSet(["a", "b"]), Tree(branch("*", ["a", "b"]))),
    ("another range", Interval(0, 10), Interval(0, 11)),
    ("another grid", Interval(0, 10), Interval(0, 10, snap=[2])),
    ("another step", Interval(0, 10, step=0.5), Interval(0, 10, step=1)),
    ("another length", Prefix(4), Prefix(5)),
    ("another alphabet", Prefix(4), Prefix(4, "alphanumeric")),
    ("other levels", Calendar(["day"]), Calendar(["day", "year"])),
    ("another clock", Calendar(["day"]), Calendar(["day"], 1)),
]


@pytest.mark.parametrize(("one", "other"), [c[1:] for c in SIGNATURES], ids=[c[0] for c in SIGNATURES])
def test_signatures_tell_hierarchies_apart(one: Hierarchy, other: Hierarchy) -> None:
    assert one.signature() != other.signature()
    assert one.signature() == one.signature()
