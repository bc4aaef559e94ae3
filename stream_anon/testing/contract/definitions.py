"""What the privacy models promise, written out plainly over people and raw values: the judge that is not the gate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

NEAR = 1e-9
ILLNESSES: dict[str, Any] = {
    "any": {"stomach": ["ulcer", "gastritis", "colic"], "lung": ["flu", "cough", "asthma"], "skin": ["rash", "burn"]}
}
Row = dict[str, Any]


def leaves_under(label: str, tree: dict[str, Any] | list[str] | None = None, inside: bool = False) -> set[str]:
    """Return the leaves at or below the node of that name."""
    tree = ILLNESSES if tree is None else tree
    if isinstance(tree, list):
        return {leaf for leaf in tree if inside or leaf == label}
    return set().union(*(leaves_under(label, below, inside or name == label) for name, below in tree.items()))


LEAVES = sorted(leaves_under("any"))
PATHS = {
    leaf: [node for node in ("any", "stomach", "lung", "skin", leaf) if leaf in leaves_under(node)] for leaf in LEAVES
}


def people(rows: Sequence[Row]) -> int:
    """Return the number of different people."""
    return len({row["person"] for row in rows})


def holders(rows: Sequence[Row], attribute: str) -> Counter[Any]:
    """Count the different people who have each value."""
    return Counter(value for _, value in {(row["person"], row[attribute]) for row in rows})


def satisfied(models: Sequence[Row], rows: Sequence[Row], shown: Sequence[Row], seen: Sequence[Row]) -> bool:
    """Tell whether rows, of which `shown` is published, may leave together after the stream has brought `seen`."""
    return all(_holds(model, rows, shown, seen) for model in models)


def _holds(model: Row, rows: Sequence[Row], shown: Sequence[Row], seen: Sequence[Row]) -> bool:
    if model["model"] == "k_anonymity":
        return bool(people(rows) >= model["k"])
    name = model["attribute"]
    # A guard is judged by what a reader sees; the other models by the true values, of which raised ones tell less.
    told = [row | {name: record[name]} for row, record in zip(rows, shown, strict=True)]
    match model["model"]:
        case "l_diversity":
            return _diverse(model, holders(rows, name))
        case "lc_anonymity":
            counts = holders(rows, name)
            own = model.get("values", {})
            wanted = max(max(own.get(value, model)["l"], model["l"]) for value in counts)
            return bool(len(counts) >= wanted and _largest_share(rows, name) <= model["c"] + NEAR)
        case "alpha_k":
            return people(rows) >= model["k"] and _within_alpha(model, rows, seen)
        case "t_closeness":
            return _close(model, holders(rows, name), seen)
        case "guarding_node":
            return all(_breach(row, told, name) <= model["p"] + NEAR for row in rows if row.get("guard"))
    raise AssertionError(f"no definition of {model['model']}")


def _diverse(model: Row, counts: Counter[Any]) -> bool:
    ordered = sorted(counts.values(), reverse=True)
    match model.get("variant", "distinct"):
        case "distinct":
            return bool(len(ordered) >= model["l"])
        case "entropy":
            shares = [count / sum(ordered) for count in ordered]
            return -sum(share * math.log(share) for share in shares) >= math.log(model["l"]) - NEAR
        case _:
            return bool(ordered[0] < model["c"] * sum(ordered[model["l"] - 1 :]))


def _largest_share(rows: Sequence[Row], name: str) -> float:
    return max(holders(rows, name).values()) / people(rows)


def _within_alpha(model: Row, rows: Sequence[Row], seen: Sequence[Row]) -> bool:
    name, shares = model["attribute"], {}
    for value, count in holders(rows, name).items():
        shares[value] = count / people(rows)
    if "estimate" in model:
        if len(seen) < model["estimate"]["after"]:
            return False
        bounds = {}
        for value in shares:
            wishes = [row["wish"] for row in seen if row[name] == value]
            protection = (wishes.count(1) + wishes.count(0) / 2) / len(wishes)
            bounds[value] = max(1 - protection, model.get("floor", 1 / model["k"]))
    elif isinstance(model["alpha"], dict):
        bounds = {value: model["alpha"].get(value, model.get("default", 1.0)) for value in shares}
    else:
        bounds = dict.fromkeys(shares, model["alpha"])
    return all(share <= bounds[value] + NEAR for value, share in shares.items())


def _close(model: Row, counts: Counter[Any], seen: Sequence[Row]) -> bool:
    if "estimate" in model:
        if len(seen) < model["estimate"]["after"]:
            return False
        weights: dict[str, float] = dict(Counter(row[model["attribute"]] for row in seen))
    else:
        weights = model["reference"]
    if not set(counts) <= set(weights):
        return bool(model["t"] >= 1)
    order = [leaf for leaf in _tree_order(ILLNESSES) if leaf in weights]
    gaps = [counts[v] / counts.total() - weights[v] / sum(weights.values()) for v in order]
    if model.get("distance") == "ordered":
        distance = sum(abs(sum(gaps[: i + 1])) for i in range(len(gaps) - 1)) / max(len(gaps) - 1, 1)
    else:
        distance = sum(map(abs, gaps)) / 2
    return bool(distance <= model["t"] + NEAR)


def _tree_order(tree: dict[str, Any] | list[str]) -> list[str]:
    return tree if isinstance(tree, list) else [leaf for below in tree.values() for leaf in _tree_order(below)]


def _breach(guarded: Row, told: Sequence[Row], name: str) -> float:
    """Return the chance that a reader places the guarded row's person under the node, each by their worst row."""
    secret = leaves_under(guarded["guard"])
    worst: dict[Any, float] = {}
    for row in told:
        below = leaves_under(row[name])
        worst[row["person"]] = max(worst.get(row["person"], 0.0), len(below & secret) / len(below))
    return sum(worst.values()) / len(worst)
