"""The worked examples of the literature, number by number."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from building import batch

from stream_anon.core.hierarchy import Calendar, Interval, Node, Prefix, Tree, branch
from stream_anon.core.loss.cail import cail_distance, cluster_loss
from stream_anon.core.loss.table import Partition, ncp
from stream_anon.core.loss.uncertainty import Uncertainty
from stream_anon.core.privacy import DistinctL, GuardingNode, KAnonymity, RunningWishes

CLOTHING = branch("clothing", {"bottom": ["pants", "skirt"], "top": ["T-shirts", "shirts"]})

COUNTING = [
    # remark, counting mode, loss of {skirt, pants}, loss of {pants, T-shirts}
    ("nodes below the common ancestor", "descendants", 2.0, 6.0),
    ("the ancestor counted too", "subtree", 3.0, 7.0),
    ("leaves only", "leaves", 2.0, 4.0),
    ("leaves as a share of all", "ncp", 0.5, 1.0),
]


@pytest.mark.parametrize(("counting", "close", "far"), [c[1:] for c in COUNTING], ids=[c[0] for c in COUNTING])
def test_clothing(counting: str, close: float, far: float) -> None:
    tree = Tree(CLOTHING, counting=counting)
    losses = [cluster_loss(tree.encode(c)[0][:, None], [tree]) for c in (["skirt", "pants"], ["pants", "T-shirts"])]
    assert losses == [close, far]


FIGURE = Node(
    "N",
    (
        branch("L", {"I": ["a", "b"], "J": ["c", "d"]}),
        Node("M", (branch("K", ["e", "f", "g"]), Node("h"))),
    ),
)

DISTANCES = [
    # remark, row, cluster, CAILDistance with descendants counted
    ("below one grandparent", "c", "b", 6.0),
    ("below one parent", "d", "c", 2.0),
    ("the root", "e", "b", 13.0),
    ("growth weighs more in a larger cluster", "e", "cd", 24.0),
    ("a leaf beside an inner node", "h", "e", 5.0),
    ("from a pair to its grandparent", "a", "cd", 10.0),
    ("no growth", "c", "cd", 2.0),
    ("below one parent of three", "f", "e", 3.0),
    ("beside an inner node again", "f", "h", 5.0),
    ("from a pair to the root", "f", "ab", 24.0),
]


@pytest.mark.parametrize(("row", "cluster", "expected"), [c[1:] for c in DISTANCES], ids=[c[0] for c in DISTANCES])
def test_cail_distance(row: str, cluster: str, expected: float) -> None:
    tree = Tree(FIGURE, counting="descendants")
    codes = [tree.encode(list(values))[0][:, None] for values in (row, cluster)]
    assert cail_distance(codes[0][0], codes[1], [tree]) == expected


# Ten patients: age, zip, disease (Heart, Cancer, Tracheitis); counted from 1.
TEN = [
    (51, "12562", "H"),
    (50, "12552", "C"),
    (51, "12532", "H"),
    (54, "12555", "C"),
    (54, "12555", "H"),
    (54, "12555", "T"),
    (55, "12532", "C"),
    (52, "12561", "T"),
    (52, "12533", "T"),
    (53, "12553", "T"),
]
DISEASES = Tree(branch("*", ["H", "C", "T"]))


def ten(rows: tuple[int, ...]) -> np.ndarray:
    return np.array(rows) - 1


def judge(model: KAnonymity | DistinctL, rows: tuple[int, ...]) -> bool:
    codes, _ = DISEASES.encode([TEN[i - 1][2] for i in rows])
    return model.shortfall(batch(codes.tolist())) == 0.0


def test_three_anonymous_classes_and_the_homogeneous_one() -> None:
    classes = [(1, 2, 3), (4, 5, 6, 7), (8, 9, 10)]
    assert all(judge(KAnonymity(3), rows) for rows in classes)
    assert [judge(DistinctL(0, 2), rows) for rows in classes] == [True, True, False]
    assert [judge(DistinctL(0, 3), rows) for rows in classes] == [False, True, False]


DIVERSE = [((1, 2, 8), [50, 52], "125**"), ((3, 7, 9), [51, 55], "1253*"), ((4, 5, 6, 10), [53, 54], "1255*")]


@pytest.mark.parametrize(("rows", "ages", "zips"), DIVERSE)
def test_three_diverse_classes(rows: tuple[int, ...], ages: list[int], zips: str) -> None:
    assert judge(KAnonymity(3), rows)
    assert judge(DistinctL(0, 3), rows)
    for hierarchy, column, label in ((Interval(50, 55), 0, ages), (Prefix(5), 1, zips)):
        codes, _ = hierarchy.encode([TEN[i - 1][column] for i in rows])
        assert hierarchy.label(int(codes.min()), int(codes.max())) == label


AGES = Tree(branch("*", {"50~51": ["50", "51"], "52~53": ["52", "53"], "54~55": ["54", "55"]}))
ZIPS = Tree(
    branch("125**", {"1253*": ["12532", "12533"], "1255*": ["12552", "12553", "12555"], "1256*": ["12561", "12562"]})
)


def full_domain(age_level: int, zip_level: int) -> dict[tuple[str, str], tuple[int, ...]]:
    """The rows by their labels when every value is raised by whole levels."""
    classes: dict[tuple[str, str], tuple[int, ...]] = defaultdict(tuple)
    for i, (age, zip_code, _) in enumerate(TEN, start=1):
        label = []
        for tree, value, level in ((AGES, age, age_level), (ZIPS, zip_code, zip_level)):
            node = int(tree.encode([value])[0][0])
            for _ in range(level):
                node = int(tree.parent[node])
            label.append(tree.labels[node])
        classes[label[0], label[1]] += (i,)
    return classes


@pytest.mark.parametrize(("age_level", "zip_level"), list(product(range(3), range(3))))
def test_only_the_top_of_the_lattice_is_three_diverse(age_level: int, zip_level: int) -> None:
    classes = full_domain(age_level, zip_level)
    assert sum(map(len, classes.values())) == len(TEN)
    diverse = all(judge(DistinctL(0, 3), rows) for rows in classes.values())
    assert diverse == ((age_level, zip_level) == (2, 2))


def test_full_domain_keeps_too_little_where_two_people_share_everything() -> None:
    """Ages 51, 56, 56, 51, one zip code, values H C C H: whatever the 2-diverse classes are, all publish [51, 56]."""
    ages, hierarchy = np.array([51, 56, 56, 51]), Interval(51, 56)
    sick = batch([0, 1, 1, 0])
    model = DistinctL(0, 2)
    pairs = [(i, j) for i in range(4) for j in range(i)]
    fine = [pair for pair in pairs if model.shortfall(sick.take(pair)) == 0.0]
    assert len(fine) == 4
    assert {tuple(hierarchy.label(ages[list(p)].min(), ages[list(p)].max())) for p in fine} == {(51, 56)}
    assert model.shortfall(sick) == 0.0


UNCERTAINTY = [
    # remark, measure, weights, rows, loss of each row
    ("an interval of three ages", "entropy", (1, 0), [(50, 0), (51, 0), (52, 0)], np.log2(3)),
    ("an interval counts what lies between", "entropy", (1, 0), [(50, 0), (55, 0)], np.log2(6)),
    ("a set counts what was met", "entropy", (0, 1), [(50, 0), (50, 5)], 1.0),
    ("a set of one", "entropy", (0, 1), [(50, 3), (52, 3)], 0.0),
    ("weights multiply", "entropy", (2, 0.5), [(50, 0), (53, 1)], 2 * 2 + 0.5),
    ("width instead of entropy", "width", (1, 1), [(50, 0), (53, 1)], 3 + 1),
    ("one row loses nothing", "entropy", (1, 1), [(50, 0)], 0.0),
]


@pytest.mark.parametrize(
    ("measure", "weights", "rows", "expected"), [c[1:] for c in UNCERTAINTY], ids=[c[0] for c in UNCERTAINTY]
)
def test_uncertainty(measure: str, weights: tuple[float, ...], rows: list[tuple[int, int]], expected: float) -> None:
    loss = Uncertainty([True, False], weights, measure)
    assert loss.row_loss(np.array(rows)) == pytest.approx(expected, abs=1e-12)


def test_relative_uncertainty() -> None:
    rows = np.array([(age, ZIPS.encode([code])[0][0]) for age, code, _ in TEN])
    loss = Uncertainty([True, False], [1, 1])
    everything = [np.arange(10)]
    three = [ten(rows) for rows, _, _ in DIVERSE]
    # (ages, zips): [50~52] of 3 with 3 codes, [51~55] of 5 with 2 codes, [53~54] of 2 with 2 codes
    expected = 3 * (np.log2(3) + np.log2(3)) + 3 * (np.log2(5) + 1) + 4 * (1 + 1)
    assert loss.table_loss(rows, three) == pytest.approx(expected)
    assert loss.table_loss(rows, everything) == pytest.approx(10 * (np.log2(6) + np.log2(7)))
    assert loss.relative_loss(rows, everything) == 1.0
    assert loss.relative_loss(rows, three) == pytest.approx(expected / (10 * (np.log2(6) + np.log2(7))))
    assert loss.relative_loss(rows[:1], [np.array([0])]) == 0.0


# Ten voters: age, sex, zip; counted from 1.
VOTERS = [
    (5, "M", 12000),
    (9, "M", 14000),
    (6, "M", 18000),
    (8, "M", 19000),
    (12, "M", 22000),
    (19, "M", 24000),
    (21, "F", 58000),
    (26, "F", 36000),
    (28, "F", 37000),
    (56, "F", 33000),
]

PARTITIONS = [
    # remark, classes, NCP
    ("sex, age, zip", [(1, 3, 4), (2, 5, 6), (7, 8), (9, 10)], 4.298),
    ("sex, zip, age", [(1, 2, 3), (4, 5, 6), (8, 10), (7, 9)], 4.094),
    ("age, sex, zip", [(1, 3, 4), (2, 5), (6, 7, 8), (9, 10)], 8.000),
    ("the widest range first", [(1, 2, 3), (4, 5), (6, 8, 10), (7, 9)], 8.061),
    ("the published table, tightened", [(1, 2), (3, 4), (5, 6), (7, 8, 9, 10)], 5.646),
]


@pytest.mark.parametrize(("classes", "expected"), [c[1:] for c in PARTITIONS], ids=[c[0] for c in PARTITIONS])
def test_ncp(classes: list[tuple[int, ...]], expected: float) -> None:
    hierarchies = [Interval(5, 56), Tree(branch("*", ["M", "F"])), Interval(12000, 58000)]
    columns = [h.encode(column)[0] for h, column in zip(hierarchies, zip(*VOTERS, strict=True), strict=True)]
    table = Partition(np.stack(columns, axis=1), [ten(rows) for rows in classes], hierarchies)
    assert round(ncp(table), 3) == expected


SIX = [
    ("Black", "M", "1965-03-18", "02141"),
    ("Black", "M", "1965-05-01", "02142"),
    ("Black", "M", "1966-06-10", "02135"),
    ("Black", "M", "1966-07-15", "02137"),
    ("White", "F", "1968-03-20", "02139"),
    ("White", "F", "1968-04-01", "02138"),
]


def six(birth_digits: int, zip_digits: int) -> dict[tuple[str, ...], list[int]]:
    classes: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for i, (race, sex, birth, code) in enumerate(SIX):
        classes[race, sex, birth[:birth_digits], code[:zip_digits]].append(i)
    return classes


def test_six_records_become_three_classes_of_two() -> None:
    births, zips = Calendar(["day", "year"]), Prefix(5)
    published = []
    for index in six(4, 4).values():
        birth, code = births.encode([SIX[i][2] for i in index])[0], zips.encode([SIX[i][3] for i in index])[0]
        published.append((births.label(birth.min(), birth.max()), zips.label(int(code.min()), int(code.max()))))
        assert KAnonymity(2).shortfall(batch([0] * len(index))) == 0.0
    assert published == [("1965", "0214*"), ("1966", "0213*"), ("1968", "0213*")]


def test_exact_births_leave_everyone_alone() -> None:
    classes = six(10, 4)
    assert len(classes) == 6
    assert all(KAnonymity(2).shortfall(batch([0] * len(index))) == 1.0 for index in classes.values())


# Ten patients: disease, guarding node, wish.
GUARDED = [
    ("Gastric ulcer", "Stomach disease", 1),
    ("Dyspepsia", "Dyspepsia", 1),
    ("Pneumonia", "Respiratory infection", 0),
    ("Bronchitis", "Bronchitis", 0),
    ("Pneumonia", "Pneumonia", -1),
    ("Pneumonia", "Pneumonia", 0),
    ("Flu", "", -1),
    ("Gastritis", "Gastritis", 1),
    ("Pneumonia", "Respiratory infection", 1),
    ("Flu", "Flu", -1),
]
ILLNESS = Tree(
    branch(
        "Any illness",
        {
            "Respiratory system problem": {
                "Respiratory infection": ["Flu", "Pneumonia", "Bronchitis"],
                "Vascular lung disease": ["Pulmonary edema", "Pulmonary embolism"],
            },
            "Digestive system problem": {
                "Stomach disease": ["Gastric ulcer", "Dyspepsia", "Gastritis"],
                "Colon disease": ["Colitis", "Colon cancer"],
            },
        },
    )
)


def guarded() -> object:
    codes = ILLNESS.encode([value for value, _, _ in GUARDED])[0].tolist()
    guards = [ILLNESS.node_on_path(code, g) if g else -1 for code, (_, g, _) in zip(codes, GUARDED, strict=True)]
    return batch(codes, guard=guards, psf=[wish for _, _, wish in GUARDED])


PROTECTION = [
    ("Gastric ulcer", 1.0),
    ("Dyspepsia", 1.0),
    ("Pneumonia", 0.5),
    ("Bronchitis", 0.5),
    ("Flu", 0.0),
    ("Gastritis", 1.0),
]


@pytest.mark.parametrize(("value", "prf"), PROTECTION)
def test_protection_factors(value: str, prf: float) -> None:
    wishes = RunningWishes(0, after=10, floor=0.2)
    wishes.learn(guarded())
    code = int(ILLNESS.encode([value])[0][0])
    assert wishes.protection(code) == prf
    assert wishes(code) == max(1 - prf, 0.2)


BREACHES = [
    # remark, groups, chance for each row
    ("groups of the table", [(0, 1), (2, 3), (4, 5), (6, 7, 8, 9)], [1, 0.5, 1, 0.5, 1, 1, 0, 0.25, 0.75, 0.5]),
    ("all ten together", [tuple(range(10))], [0.3, 0.1, 0.7, 0.1, 0.4, 0.4, 0, 0.1, 0.7, 0.2]),
]


@pytest.mark.parametrize(("groups", "expected"), [c[1:] for c in BREACHES], ids=[c[0] for c in BREACHES])
def test_breaches(groups: list[tuple[int, ...]], expected: list[float]) -> None:
    model = GuardingNode(0, ILLNESS, 0.3)
    chances = [chance for group in groups for chance in model.breach(guarded().take(group)).tolist()]
    assert chances == pytest.approx(expected, abs=1e-12)


def test_the_bound_of_a_third_can_be_reached_by_raising_values() -> None:
    model = GuardingNode(0, ILLNESS, 0.3)
    assert model.shortfall(guarded()) == pytest.approx(0.4 + 0.1 + 0.1 + 0.4)
    repaired = model.repair(guarded())
    assert model.shortfall(repaired) == 0.0
    assert model.breach(repaired).max() <= 0.3 + 1e-9
