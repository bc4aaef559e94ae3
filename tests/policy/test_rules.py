from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from stream_anon.policy import Policy, problems

VALID: dict[str, Any] = {
    "version": 1,
    "name": "rules",
    "subject": "id",
    "attributes": {
        "id": {"role": "identifier"},
        "age": {
            "role": "quasi_identifier",
            "type": "integer",
            "hierarchy": {"kind": "interval", "range": [0, 120], "snap": [5, 10]},
        },
        "city": {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "flat", "values": ["a", "b"]}},
        "ill": {"role": "sensitive", "hierarchy": {"kind": "flat", "values": ["x", "y"]}},
        "ward": {"role": "insensitive"},
    },
    "privacy": [{"model": "k_anonymity", "k": 5}, {"model": "l_diversity", "attribute": "ill", "l": 2}],
}

AGE, CITY, ILL, SECOND = "attributes/age", "attributes/city", "attributes/ill", "privacy/1"
TREE = {"*": {"p": ["a", "b"], "q": ["c", "a"]}}
LATER = {"after": 9}
REQUESTS = {"role": "sensitive", "guarding_node": "wish"}
TOPICS = {"bootstrap": "b", "group": "g", "input": "in", "output": "out"}


def interval(type_: str = "integer", **settings: Any) -> dict[str, Any]:
    return {"role": "quasi_identifier", "type": type_, "hierarchy": {"kind": "interval", **settings}}


def category(**hierarchy: Any) -> dict[str, Any]:
    return {"role": "quasi_identifier", "type": "category", "hierarchy": hierarchy}


def calendar(*levels: str) -> dict[str, Any]:
    return {"role": "quasi_identifier", "type": "timestamp", "hierarchy": {"kind": "calendar", "levels": list(levels)}}


def model(name: str, **settings: Any) -> dict[str, Any]:
    return {"model": name, "attribute": "ill", **settings}


CASES: list[tuple[str, str, Any, str, str]] = [
    # remark, where, what is put there, code, where the finding is: below that place, or beside it (^)
    ("a subject that is not declared", "subject", "idd", "unknown-attribute", ""),
    ("a subject that is no identifier", "subject", "ward", "wrong-role", ""),
    ("an attribute that is not declared", f"{SECOND}/attribute", "il", "unknown-attribute", ""),
    ("an attribute that is not sensitive", f"{SECOND}/attribute", "ward", "wrong-role", ""),
    ("a guard without a field", SECOND, model("guarding_node", p=0.5), "missing-guarding-node", "/attribute"),
    (
        "reference and estimate",
        SECOND,
        model("t_closeness", t=0.5, reference={"x": 1}, estimate=LATER),
        "either-or",
        "/estimate",
    ),
    ("neither alpha nor estimate", SECOND, model("alpha_k", k=2), "missing-key", "/alpha"),
    ("an estimate without psf", SECOND, model("alpha_k", k=2, estimate=LATER), "missing-psf", "/estimate"),
    ("a floor without estimate", SECOND, model("alpha_k", k=2, alpha=0.5, floor=0.6), "unused-key", "/floor"),
    ("neither reference nor estimate", SECOND, model("t_closeness", t=0.5), "missing-key", "/reference"),
    ("a reference without weight", SECOND, model("t_closeness", t=0.5, reference={"x": 0}), "bad-value", "/reference"),
    ("recursive without c", SECOND, model("l_diversity", l=2, variant="recursive"), "missing-key", "/c"),
    ("one and a half values counted", SECOND, model("l_diversity", l=1.5), "not-whole", "/l"),
    ("c without recursive", SECOND, model("l_diversity", l=2, c=1), "unused-key", "/c"),
    ("nobody says k", "privacy", [model("l_diversity", l=2)], "no-k", ""),
    ("an interval of categories", f"{AGE}/type", "category", "kind-and-type", "^/hierarchy/kind"),
    ("values of integers", f"{CITY}/type", "integer", "kind-and-type", "^/hierarchy/kind"),
    ("months of integers", AGE, {**calendar("day"), "type": "integer"}, "kind-and-type", "/hierarchy/kind"),
    ("range and scale", AGE, interval(range=[0, 9], scale=5), "either-or", "/hierarchy/scale"),
    ("neither range nor scale", AGE, interval(), "missing-key", "/hierarchy/range"),
    ("a range backwards", AGE, interval(range=[9, 0]), "not-increasing", "/hierarchy/range"),
    ("half a year", AGE, interval(range=[0.5, 9]), "bad-value", "/hierarchy/range"),
    (
        "more steps than a float can count",
        AGE,
        interval(range=[0, 1e18], snap="none"),
        "out-of-range",
        "/hierarchy/range",
    ),
    ("numbers without a step", AGE, interval("number", range=[0, 9]), "missing-key", "/hierarchy/step"),
    ("integers with a step", AGE, interval(range=[0, 9], step=2), "unused-key", "/hierarchy/step"),
    ("grids that shrink", AGE, interval(range=[0, 99], snap=[10, 5]), "not-increasing", "/hierarchy/snap/1"),
    ("grids that do not nest", AGE, interval(range=[0, 99], snap=[5, 12]), "not-a-multiple", "/hierarchy/snap/1"),
    ("a grid between integers", AGE, interval(range=[0, 99], snap=[2.5]), "not-a-multiple", "/hierarchy/snap/0"),
    (
        "a grid off the step",
        AGE,
        interval("number", range=[0, 9], step=0.2, snap=[0.5]),
        "not-a-multiple",
        "/hierarchy/snap/0",
    ),
    ("levels backwards", AGE, calendar("day", "hour"), "not-increasing", "/hierarchy/levels/1"),
    ("a level twice", AGE, calendar("day", "day"), "not-increasing", "/hierarchy/levels/1"),
    ("a value twice", CITY, category(kind="flat", values=["a", "b", "a"]), "duplicate-value", "/hierarchy/values/2"),
    ("a leaf twice", CITY, category(kind="tree", tree=TREE), "duplicate-value", "/hierarchy/tree/*/q/1"),
    (
        "a node called like its leaf",
        CITY,
        category(kind="tree", tree={"*": {"p": ["p"]}}),
        "duplicate-value",
        "/hierarchy/tree/*/p/0",
    ),
    ("a node without leaves", CITY, category(kind="tree", tree={"*": {"p": []}}), "no-children", "/hierarchy/tree/*/p"),
    ("no bound at all", "stream", {"max_delay": {}}, "no-bound", "/max_delay"),
    ("a buffer of k", "stream", {"max_buffer": 5}, "out-of-range", "/max_buffer"),
    ("an empty path segment", "attributes/a..b", {"role": "insensitive"}, "bad-name", ""),
    ("a field inside another", "attributes/ward.floor", {"role": "insensitive"}, "overlapping-names", ""),
    ("the output's own field", "attributes/_anon.size", {"role": "insensitive"}, "reserved-name", ""),
    ("a request that is published", ILL, {"role": "sensitive", "psf": "ward"}, "published-request", "/psf"),
    (
        "a request inside a published field",
        ILL,
        {"role": "sensitive", "guarding_node": "ward.x"},
        "published-request",
        "/guarding_node",
    ),
    ("one field for two requests", ILL, {**REQUESTS, "psf": "wish"}, "overlapping-names", "/psf"),
    ("a request inside another", ILL, {**REQUESTS, "psf": "wish.psf"}, "overlapping-names", "/psf"),
    ("the output is read again", "kafka", {**TOPICS, "output": "in"}, "same-topic", "/output"),
    ("dead letters among the output", "kafka", {**TOPICS, "dead_letter": "out"}, "same-topic", "/dead_letter"),
    (
        "merging without clusters to merge",
        "algorithm",
        {"name": "cail", "clusters": "transient", "completion": "merge"},
        "needs-standing",
        "/completion",
    ),
    (
        "a loss of trees for numbers",
        "algorithm",
        {"name": "cail", "clusters": "standing", "loss": "leaves"},
        "needs-tree",
        "/loss",
    ),
]


def changed(where: str, what: Any, base: dict[str, Any] = VALID) -> Policy:
    data = deepcopy(base)
    *parents, last = where.split("/")
    place: Any = data
    for step in parents:
        place = place[int(step) if isinstance(place, list) else step]
    place[int(last) if isinstance(place, list) else last] = what
    return Policy.model_validate(data)


def test_the_base_keeps_all_rules() -> None:
    assert problems(Policy.model_validate(VALID)) == []


@pytest.mark.parametrize(("where", "what", "code", "path"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_broken_rule(where: str, what: Any, code: str, path: str) -> None:
    [problem] = problems(changed(where, what))
    expected = path.replace("^", where.rpartition("/")[0]) if path.startswith("^") else where + path
    assert (problem.code, "/".join(map(str, problem.path))) == (code, expected)
    assert problem.hint


KEPT: list[tuple[str, str, Any]] = [
    # remark, where, what is put there
    ("binary fractions that nest", AGE, interval("number", range=[0, 9], step=0.1, snap=[0.3, 0.9, 1.8])),
    ("an open domain", AGE, interval(scale=50, snap=[5])),
    ("every unit", AGE, calendar("second", "minute", "hour", "day", "week", "month", "quarter", "year")),
    ("no subject", "subject", None),
    ("three topics", "kafka", {**TOPICS, "dead_letter": "dead"}),
    ("two requests", ILL, {**REQUESTS, "psf": "psf"}),
    ("nested fields side by side", "attributes/home.zip", {"role": "insensitive"}),
    ("a name that only begins alike", "attributes/wards", {"role": "insensitive"}),
    ("one and a half values by entropy", SECOND, model("l_diversity", l=1.5, variant="entropy")),
    ("recursive with c", SECOND, model("l_diversity", l=2, variant="recursive", c=1.5)),
    ("one alpha for all", SECOND, model("alpha_k", k=2, alpha=0.5)),
    ("a shallow tree", CITY, category(kind="tree", tree={"*": ["a", "b"]})),
]


@pytest.mark.parametrize(("where", "what"), [c[1:] for c in KEPT], ids=[c[0] for c in KEPT])
def test_kept_rule(where: str, what: Any) -> None:
    assert problems(changed(where, what)) == []


def test_no_quasi_identifier() -> None:
    attributes = {"id": {"role": "identifier"}, "ill": {"role": "sensitive"}}
    assert [p.code for p in problems(changed("attributes", attributes))] == ["no-quasi-identifier"]


def test_a_guard_needs_a_tree() -> None:
    data = deepcopy(VALID)
    data["attributes"]["ill"] = {"role": "sensitive", "guarding_node": "guard"}
    assert [p.code for p in problems(changed(SECOND, model("guarding_node", p=0.5), data))] == ["needs-tree"]


@pytest.mark.parametrize(("floor", "codes"), [(0.2, []), (0.19, ["out-of-range"])])
def test_floor_is_at_least_one_over_k(floor: float, codes: list[str]) -> None:
    data = deepcopy(VALID)
    data["attributes"]["ill"] = {"role": "sensitive", "psf": "wish"}
    estimate = model("alpha_k", k=5, estimate={"after": 100}, floor=floor)
    assert [p.code for p in problems(changed(SECOND, estimate, data))] == codes


@pytest.mark.parametrize(
    ("secret", "good"),
    [
        ("", False),
        ("   ", False),
        ("summer2024", False),
        ("abcdefgh" * 3 + "ijklmno", False),
        ("a" * 64, False),
        ("correct horse battery staple 23!", True),
        ("9f86d081884c7d659a2feaa0c55ad015", True),
    ],
)
def test_a_secret_that_can_be_guessed_is_refused(secret: str, good: bool) -> None:
    """With the offline guess of a weak one every row is told from every offset."""
    found = [p for p in problems(Policy.model_validate(VALID | {"secret": secret})) if p.code == "weak-secret"]
    assert len(found) == int(not good)
    for problem in found:
        assert problem.path == ("secret",)
        assert "token_urlsafe(32)" in problem.hint
        assert not secret.strip() or secret not in problem.message + problem.hint
