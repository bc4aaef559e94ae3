"""The worked examples of the papers, by the algorithms themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from making import classes, names, number, rows_of, schema_of

from stream_anon.batch import build, partition
from stream_anon.core.loss.table import Partition, ncp
from stream_anon.core.privacy import GuardingNode
from stream_anon.observe.tally import Tally

SICK = [
    (51, "12562", "Heart"), (50, "12552", "Cancer"), (51, "12532", "Heart"), (54, "12555", "Cancer"),
    (54, "12555", "Heart"), (54, "12555", "Tracheitis"), (55, "12532", "Cancer"), (52, "12561", "Tracheitis"),
    (52, "12533", "Tracheitis"), (53, "12553", "Tracheitis"),
]  # fmt: skip
DISEASES = {"role": "sensitive"}
DIVERSE = {(1, 2, 8), (3, 7, 9), (4, 5, 6, 10)}


def diversity(l: int, attribute: str = "disease", **more: Any) -> dict[str, Any]:  # noqa: E741
    return {"model": "l_diversity", "attribute": attribute, "l": l} | more


def test_l_clustering_gives_the_published_classes_for_every_seed(tmp_path: Path) -> None:
    attributes = {"age": number(50, 55), "zip": names(kind="prefix", length=5), "disease": DISEASES}
    schema = schema_of(tmp_path, attributes, [diversity(3)])
    rows = rows_of(schema, [dict(zip(("age", "zip", "disease"), row, strict=True)) for row in SICK])
    options = {"measure": "width", "weights": "range"}
    for seed in range(200):
        found = partition("l-clustering", rows, schema, options, seed)
        assert classes(found.classes) == DIVERSE, seed
    labels = {tuple(map(str, group.labels)) for group in found.groups}
    assert labels == {("[50, 52]", "125**"), ("[51, 55]", "1253*"), ("[53, 54]", "1255*")}


def test_l_clustering_of_two_pairs_is_one_interval(tmp_path: Path) -> None:
    schema = schema_of(tmp_path, {"age": number(51, 56), "disease": DISEASES}, [diversity(2)])
    rows = rows_of(schema, [{"age": age, "disease": ill} for age, ill in zip((51, 56, 56, 51), "HCCH", strict=True)])
    for seed in range(20):
        assert {tuple(g.labels[0]) for g in partition("l-clustering", rows, schema, seed=seed).groups} == {(51, 56)}


def test_full_domain_three_diversity_needs_the_top_of_the_lattice(tmp_path: Path) -> None:
    ages = {"*": {"50~51": ["50", "51"], "52~53": ["52", "53"], "54~55": ["54", "55"]}}
    zips = {"125**": {"1253*": ["12532", "12533"], "1255*": ["12552", "12553", "12555"], "1256*": ["12561", "12562"]}}
    attributes = {"age": names(kind="tree", tree=ages), "zip": names(kind="tree", tree=zips), "disease": DISEASES}
    schema = schema_of(tmp_path, attributes, [diversity(3)])
    rows = rows_of(schema, [dict(zip(("age", "zip", "disease"), row, strict=True)) for row in SICK])
    assert build("l-incognito").node_of(rows, schema) == (2, 2)
    assert classes(partition("l-incognito", rows, schema).classes) == {tuple(range(1, 11))}


VOTERS = [
    (5, "M", 12000), (9, "M", 14000), (6, "M", 18000), (8, "M", 19000), (12, "M", 22000), (19, "M", 24000),
    (21, "F", 58000), (26, "F", 36000), (28, "F", 37000), (56, "F", 33000),
]  # fmt: skip

ORDERS = [
    # remark, order, classes, NCP
    ("sex first", ["sex", "age", "zip"], {(1, 3, 4), (2, 5, 6), (7, 8), (9, 10)}, 4.298),
    ("sex, then zip", ["sex", "zip", "age"], {(1, 2, 3), (4, 5, 6), (8, 10), (7, 9)}, 4.094),
    ("age first", ["age", "sex", "zip"], {(1, 3, 4), (2, 5), (6, 7, 8), (9, 10)}, 8.000),
    ("the widest first, ties to age", [], {(1, 2, 3), (4, 5), (6, 8, 10), (7, 9)}, 8.061),
]


@pytest.mark.parametrize("categories", ["tree", "leaves"])
@pytest.mark.parametrize(("order", "expected", "loss"), [c[1:] for c in ORDERS], ids=[c[0] for c in ORDERS])
def test_orders(tmp_path: Path, order: list[str], expected: set[Any], loss: float, categories: str) -> None:
    attributes = {
        "age": number(5, 56),
        "sex": names(kind="flat", values=["M", "F"]),
        "zip": number(12000, 58000),
        "disease": {"role": "insensitive"},
    }
    schema = schema_of(tmp_path, attributes, [{"model": "k_anonymity", "k": 2}])
    rows = rows_of(schema, [dict(zip(("age", "sex", "zip"), row, strict=True)) for row in VOTERS])
    found = partition("mondrian", rows, schema, {"order": order, "categories": categories})
    assert classes(found.classes) == expected
    table = Partition(rows.qi, found.classes, [column.hierarchy for column in schema.quasi])
    assert round(ncp(table), 3) == loss


CELLS = [
    # remark, order, classes: A 50~55 F, B 50~55 M, C 55~60 F, D 55~60 M
    ("what matters first is kept: sex", ["sex", "age"], {(1, 3), (2, 4)}),
    ("what matters first is kept: age", ["age", "sex"], {(1, 2), (3, 4)}),
]


@pytest.mark.parametrize(("order", "expected"), [c[1:] for c in CELLS], ids=[c[0] for c in CELLS])
def test_four_cells(tmp_path: Path, order: list[str], expected: set[Any]) -> None:
    attributes = {
        "age": names(kind="flat", values=["50~55", "55~60"]),
        "sex": names(kind="flat", values=["F", "M"]),
        "disease": {"role": "insensitive"},
    }
    schema = schema_of(tmp_path, attributes, [{"model": "k_anonymity", "k": 2}])
    rows = rows_of(schema, [{"age": age, "sex": sex} for age in ("50~55", "55~60") for sex in ("F", "M")])
    assert classes(partition("mondrian", rows, schema, {"order": order}).classes) == expected


SIX = [
    ("Black", "M", "1965-03-18", "02141", "Flu"), ("Black", "M", "1965-05-01", "02142", "Cancer"),
    ("Black", "M", "1966-06-10", "02135", "Obesity"), ("Black", "M", "1966-07-15", "02137", "Gastritis"),
    ("White", "F", "1968-03-20", "02139", "HIV"), ("White", "F", "1968-04-01", "02138", "Cancer"),
]  # fmt: skip


@pytest.mark.parametrize("name", ["sweep", "mondrian", "l-incognito", "k-member"])
def test_six_records_become_three_pairs(tmp_path: Path, name: str) -> None:
    attributes = {
        "race": names(kind="flat", values=["Black", "White"]),
        "sex": names(kind="flat", values=["M", "F"]),
        "birth": names(kind="calendar", levels=["day", "year"]) | {"type": "timestamp"},
        "zip": names(kind="prefix", length=5),
        "disease": DISEASES,
    }
    schema = schema_of(tmp_path, attributes, [{"model": "k_anonymity", "k": 2}])
    records = [dict(zip(("race", "sex", "birth", "zip", "disease"), row, strict=True)) for row in SIX]
    found = partition(name, rows_of(schema, records), schema)
    assert classes(found.classes) == {(1, 2), (3, 4), (5, 6)}
    published = {group.labels for group in found.groups}
    assert published == {
        ("Black", "M", "1965", "0214*"), ("Black", "M", "1966", "0213*"), ("White", "F", "1968", "0213*"),
    }  # fmt: skip


OCCUPATIONS = {
    "Armed-Forces": (0.95, 10), "Exec-managerial": (0.90, 10), "Prof-specialty": (0.85, 9),
    "Protective-serv": (0.80, 8), "Priv-house-serv": (0.80, 8), "Transport-moving": (0.70, 8),
    "Tech-support": (0.65, 7), "Farming-fishing": (0.60, 7), "Machine-op-inspct": (0.50, 6),
    "Handlers-cleaners": (0.40, 5), "Craft-repair": (0.30, 4), "Adm-clerical": (0.20, 3),
    "Other-service": (0.10, 2), "Sales": (0.10, 2),
}  # fmt: skip


def workers(count: int) -> list[dict[str, Any]]:
    """Occupations that go with the zip, so that neighbours are alike: what a skew attack needs."""
    rng = np.random.default_rng(11)
    zone, job = rng.integers(0, 7, count), rng.integers(0, 14, count)
    job = np.where(rng.random(count) < 0.3, 2 * zone, job)
    every = list(OCCUPATIONS)
    age = rng.integers(20, 60, count).tolist()
    return [{"age": age[i], "zip": f"{zone[i]}{i % 3}", "job": every[job[i]]} for i in range(count)]


def exposed(groups: Any, c: float) -> int:
    """Rows in a class where one value's share is above c."""
    worst = [(len(g.rows), np.unique(g.rows.values[:, 0].astype(str), return_counts=True)[1].max()) for g in groups]
    return sum(size for size, most in worst if most > c * size + 1e-9)


@pytest.mark.parametrize("name", ["lc-clustering", "mondrian", "sweep"])
def test_fourteen_sensitivities_leave_nobody_open_to_a_skew_attack(tmp_path: Path, name: str) -> None:
    attributes = {"age": number(20, 59), "zip": names(kind="prefix", length=2), "job": {"role": "sensitive"}}
    values = {job: {"sensitivity": s, "l": l} for job, (s, l) in OCCUPATIONS.items()}  # noqa: E741
    personal = {"model": "lc_anonymity", "attribute": "job", "l": 2, "c": 0.4, "values": values}
    records = workers(700)
    schema = schema_of(tmp_path, attributes, [personal])
    found = partition(name, rows_of(schema, records), schema)
    assert sum(len(group.rows) for group in found.groups) > 0.9 * len(records)
    for group in found.groups:
        jobs = group.rows.values[:, 0].tolist()
        assert len(set(jobs)) >= max(OCCUPATIONS[job][1] for job in jobs)
    assert exposed(found.groups, 0.4) == 0
    plain = schema_of(tmp_path, attributes, [diversity(2, "job")])
    assert exposed(partition("mondrian", rows_of(plain, records), plain).groups, 0.4) > 50


GUARDED = [
    (24, "M", 13000, "Gastric ulcer", "Stomach disease", 1), (28, "M", 12000, "Dyspepsia", "Dyspepsia", 1),
    (27, "M", 17000, "Pneumonia", "Respiratory infection", 0), (29, "M", 19000, "Bronchitis", "Bronchitis", 0),
    (31, "M", 21000, "Pneumonia", "Pneumonia", -1), (38, "M", 24000, "Pneumonia", "Pneumonia", 0),
    (42, "F", 56000, "Flu", "", -1), (45, "F", 38000, "Gastritis", "Gastritis", 1),
    (47, "F", 37000, "Pneumonia", "Respiratory infection", 1), (76, "F", 32000, "Flu", "Flu", -1),
]  # fmt: skip
ILLNESS = {
    "Any illness": {
        "Respiratory system problem": {
            "Respiratory infection": ["Flu", "Pneumonia", "Bronchitis"],
            "Vascular lung disease": ["Pulmonary edema", "Pulmonary embolism"],
        },
        "Digestive system problem": {
            "Stomach disease": ["Gastric ulcer", "Dyspepsia", "Gastritis"],
            "Colon disease": ["Colitis", "Colon cancer"],
        },
    }
}
TEN = {
    "age": number(24, 76),
    "sex": names(kind="flat", values=["M", "F"]),
    "zip": number(12000, 56000),
    "disease": {
        "role": "sensitive", "hierarchy": {"kind": "tree", "tree": ILLNESS}, "guarding_node": "guard", "psf": "psf",
    },
}  # fmt: skip


def ten(schema: Any) -> Any:
    keys = ("age", "sex", "zip", "disease", "guard", "psf")
    return rows_of(schema, [dict(zip(keys, row, strict=True)) for row in GUARDED])


@pytest.mark.parametrize("p", [0.5, 0.3])
@pytest.mark.parametrize("name", ["guarding", "mondrian", "sweep"])
def test_nobody_is_placed_under_their_guard(tmp_path: Path, name: str, p: float) -> None:
    guarding = {"model": "guarding_node", "attribute": "disease", "p": p}
    schema = schema_of(tmp_path, TEN, [{"model": "k_anonymity", "k": 2}, guarding])
    found = partition(name, ten(schema), schema)
    assert sum(len(group.rows) for group in found.groups) == 10
    [model] = [m for m in schema.requirements.models if isinstance(m, GuardingNode)]
    for group in found.groups:
        shown = group.rows.with_sensitive(group.shown)
        assert model.breach(shown).max() <= p + 1e-9
    assert 0.0 < lost_by_raising(found.groups) < 1.0


def lost_by_raising(groups: Any) -> float:
    tally = Tally(["age", "sex", "zip"], 2, "records")
    tally.publish(groups, 0.0)
    assert tally.raised["disease"] > 0
    return tally.lost_by_raising["disease"]


def test_a_stricter_bound_costs_more(tmp_path: Path) -> None:
    losses = []
    for p in (0.5, 0.3):
        guarding = {"model": "guarding_node", "attribute": "disease", "p": p}
        schema = schema_of(tmp_path, TEN, [{"model": "k_anonymity", "k": 2}, guarding])
        losses.append(lost_by_raising(partition("guarding", ten(schema), schema).groups))
    assert losses[0] < losses[1]


@pytest.mark.parametrize("name", ["mondrian", "sweep", "k-member", "l-incognito"])
def test_alphas_from_wishes_are_kept(tmp_path: Path, name: str) -> None:
    """1 - prf: ulcer, dyspepsia, gastritis 0, raised to the floor; pneumonia and bronchitis .5, flu 1."""
    model = {"model": "alpha_k", "attribute": "disease", "k": 3, "estimate": {"after": 10}, "floor": 0.34}
    schema = schema_of(tmp_path, TEN, [model])
    found = partition(name, ten(schema), schema)
    assert len(found.suppressed) < 10
    alpha = {"Pneumonia": 0.5, "Bronchitis": 0.5, "Flu": 1.0}
    for group in found.groups:
        values, counts = np.unique(group.rows.values[:, 0].astype(str), return_counts=True)
        for value, count in zip(values, counts, strict=True):
            assert count / group.people <= alpha.get(value, 0.34) + 1e-9
