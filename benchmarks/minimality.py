"""Minimality attacks on every model and algorithm, on tables with rare values: can groups be read?

Each line is one attacker: how often it is right about somebody's value, beside what everybody may believe, the value's
share in the group or 1/l. `ratio` compares the two as they are; `gain` leaves off two standard deviations, for the sign
is the best of some forty. `suppressed_p` is the chance that suppressed rows differ so much in their values from the
whole (chi-square).

    python benchmarks/minimality.py --json
    python benchmarks/minimality.py --algorithm cail sweep --model distinct --rare 0.05 --replays 100
    python benchmarks/minimality.py --data DIR --json        # Adult alone: occupation, and salary-class
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from adult import AGES as AGE
from adult import QUASI

from stream_anon.core.batch import NO_GUARD, UNNUMBERED, Batch
from stream_anon.core.encode import Encoder
from stream_anon.core.hierarchy import Tree
from stream_anon.core.schema import Schema
from stream_anon.insight.minimality import BatchRun, Run, StreamRun, minimality
from stream_anon.policy import Policy

K = 5
SEX = {"kind": "flat", "values": ["f", "m"]}
JOBS = {"kind": "tree", "tree": {"any": {f"g{g}": [f"j{g}{i}" for i in range(4)] for g in range(4)}}}
AGES = {"kind": "interval", "range": [0, 99], "snap": "none"}
VALUES = {"kind": "tree", "tree": {"any": {f"w{g}": [f"v{g}{i}" for i in range(5)] for g in range(4)}}}
STREAM: dict[str, dict[str, Any]] = {
    "cail": {"name": "cail"},
    "standing": {"name": "cail", "clusters": "standing"},
    "castle": {"name": "castle"},
    "fads": {"name": "fads"},
}
BATCH = ("sweep", "mondrian", "k-member", "l-clustering", "lc-clustering")
"""The last two choose by value, by definition."""

GUARDED = 0.3
"""The share of people who guard the node above their value."""

MADE_FOR = {"l-clustering": "distinct", "lc-clustering": "l and c"}
USUAL = (*STREAM, "sweep", "mondrian")


def shares(rare: float, values: int) -> np.ndarray:
    """Return how frequent each value is: all but the first share what is rare."""
    return np.r_[1 - rare, np.full(values - 1, rare / (values - 1))]


def models(share: np.ndarray) -> dict[str, dict[str, Any]]:
    """Return every model, as strict as a table with these shares can bear with something to spare."""
    top, entropy = float(share.max()), float(np.exp(-(share * np.log(share)).sum()))
    bound = round(top + (1 - top) * 0.4, 3)
    asked = 2 if len(share) == 2 else 3
    return {
        "distinct": {"model": "l_diversity", "l": asked},
        "entropy": {"model": "l_diversity", "l": round(1 + (entropy - 1) * 0.6, 3), "variant": "entropy"},
        "recursive": {"model": "l_diversity", "l": 2, "variant": "recursive", "c": round(1.7 * top / (1 - top), 2)},
        "l and c": {"model": "lc_anonymity", "l": asked, "c": bound},
        "alpha": {"model": "alpha_k", "k": K, "alpha": bound},
        "t": {"model": "t_closeness", "t": round(0.8 * (1 - top), 3), "reference": "REFERENCE"},
        "guarding": {"model": "guarding_node", "p": 0.6},
    }


@dataclass(frozen=True)
class Ground:
    """A table to be attacked: its rows, how frequent its values are, and a schema for any models and algorithm."""

    name: str
    rows: Batch
    share: np.ndarray
    schema: Callable[[list[dict[str, Any]], dict[str, Any]], Schema]


def made_ground(rare: float, values: int, rows: int, seed: int) -> Ground:
    """Return a made-up table of so many values, all but one of which share what is rare."""
    share = shares(rare, values)
    return Ground(f"{values} values, rare {rare}", made_up(share, rows, seed), share, lambda m, a: schema(m, a, share))


def adult_ground(folder: Path, sensitive: str, rows: int) -> Ground:
    """Return the first rows of Adult in random order, with one sensitive attribute."""
    with (folder / "adult.csv").open(encoding="utf-8", newline="") as file:
        records: list[Any] = [row | {"age": int(row["age"])} for row in csv.DictReader(file)][:rows]
    ages = {"kind": "interval", "range": list(AGE), "snap": "none"}
    quasi: dict[str, Any] = {
        name: {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "csv", "path": f"{name}.csv"}}
        for name in QUASI[1:]
    }
    quasi["age"] = {"role": "quasi_identifier", "type": "integer", "hierarchy": ages}
    own = {"role": "sensitive", "hierarchy": {"kind": "csv", "path": f"{sensitive}.csv"}, "guarding_node": "guard"}
    values, counts = np.unique([record[sensitive] for record in records], return_counts=True)
    named = {str(value): float(count) for value, count in zip(values, counts, strict=True)}

    def of(privacy: list[dict[str, Any]], algorithm: dict[str, Any]) -> Schema:
        policy = Policy.model_validate(
            {
                "version": 1,
                "name": "attacked",
                "secret": "a secret that the attacker does not know",
                "attributes": quasi | {sensitive: own},
                "privacy": referred(privacy, sensitive, named),
                "stream": {"max_delay": {"records": 1_000}},
                "algorithm": algorithm,
            }
        )
        policy._folder = folder / "hierarchies"
        return Schema.of(policy)

    plain = of([{"model": "k_anonymity", "k": K}], STREAM["cail"])
    order = np.random.default_rng(1).permutation(len(records))
    ref = np.stack([np.zeros(len(order), dtype=np.int64), np.arange(len(order))], axis=1)
    encoded = Encoder(plain).encode([records[i] for i in order], ref, np.arange(len(order), dtype=np.float64))
    return Ground(f"adult {sensitive}", guarded(encoded.batch, plain), np.sort(counts / counts.sum())[::-1], of)


def referred(privacy: list[dict[str, Any]], attribute: str, named: dict[str, float]) -> list[dict[str, Any]]:
    """Return models of an attribute, with the table's own distribution where they ask for one."""
    found = [model | ({} if model["model"] == "k_anonymity" else {"attribute": attribute}) for model in privacy]
    return [model | ({"reference": named} if "reference" in model else {}) for model in found]


def guarded(rows: Batch, of: Schema, seed: int = 3) -> Batch:
    """Let some people guard the node above their value."""
    tree = of.sensitive[0].hierarchy
    assert isinstance(tree, Tree)
    above = tree.parent[rows.sensitive[:, 0]]
    some = (np.random.default_rng(seed).random(len(rows)) < GUARDED) & (tree.parent[above] >= 0)
    rows.guard[some, 0] = above[some]
    return rows


def delay(share: np.ndarray) -> int:
    """Return a bound in which some twenty rows of rare values arrive: fewer, and what waits cannot satisfy a model."""
    return max(300, int(20 / (1 - float(share.max()))))


def schema(privacy: list[dict[str, Any]], algorithm: dict[str, Any], share: np.ndarray) -> Schema:
    """Return a policy over three quasi-identifiers and one sensitive attribute."""
    leaves = [leaf for group in VALUES["tree"]["any"].values() for leaf in group]  # type: ignore[index]
    named = {leaf: float(s) for leaf, s in zip(leaves, share, strict=False)}
    quasi = {"age": ("integer", AGES), "job": ("category", JOBS), "sex": ("category", SEX)}
    attributes: dict[str, Any] = {
        name: {"role": "quasi_identifier", "type": kind, "hierarchy": hierarchy}
        for name, (kind, hierarchy) in quasi.items()
    }
    own = {"role": "sensitive", "hierarchy": VALUES, "guarding_node": "guard"}
    return Schema.of(
        Policy.model_validate(
            {
                "version": 1,
                "name": "attacked",
                "secret": "a secret that the attacker does not know",
                "attributes": attributes | {"ill": own},
                "privacy": referred(privacy, "ill", named),
                "stream": {"max_delay": {"records": delay(share)}},
                "algorithm": algorithm,
            }
        )
    )


def made_up(share: np.ndarray, rows: int, seed: int = 8) -> Batch:
    """Return rows whose values have nothing to do with their quasi-identifiers."""
    rng, number = np.random.default_rng(seed), np.arange(rows)
    ages = np.clip(rng.normal(45, 18, rows), 0, 99).astype(np.int64)
    made = Batch(
        qi=np.stack([ages, rng.integers(0, 16, rows), rng.integers(0, 2, rows)], axis=1),
        sensitive=rng.choice(len(share), (rows, 1), p=share).astype(np.int64),
        guard=np.full((rows, 1), NO_GUARD),
        psf=np.zeros((rows, 1), dtype=np.int64),
        subject=number,
        arrived=number.astype(np.float64),
        ref=np.stack([np.zeros(rows, dtype=np.int64), number], axis=1),
        serial=np.full(rows, UNNUMBERED),
        values=np.full((rows, 1), None, dtype=object),
    )
    return guarded(made, schema([{"model": "k_anonymity", "k": K}], STREAM["cail"], share))


def run(of: Schema, rows: Batch, algorithm: str) -> Run:
    """Run a stream or a batch algorithm."""
    return StreamRun(of, rows) if algorithm in STREAM else BatchRun(of, rows, algorithm)


def attack(algorithm: str, model: dict[str, Any], ground: Ground, replays: int) -> Iterator[dict[str, Any]]:
    """Yield what each attacker achieves on one algorithm under one model."""
    settings, rows = STREAM.get(algorithm, STREAM["cail"]), ground.rows
    people = {"model": "k_anonymity", "k": K}
    of = ground.schema([people, model], settings)
    made = run(of, rows, algorithm)
    blind = made if algorithm in MADE_FOR else run(ground.schema([people], settings), rows, algorithm)
    value = rows.sensitive[:, 0]
    common = {
        "published": round(1 - len(made.suppressed) / len(rows), 4),
        "suppressed": len(made.suppressed),
        "suppressed_p": round(same_shares(value, made.suppressed), 4),
        "groups": len(made.groups),
    }
    for found in minimality(of, rows, made, blind, replays):
        yield common | {
            "attacker": found.attacker,
            "posterior": round(found.posterior, 3),
            "allowed": round(found.allowed, 3),
            "ratio": round(found.posterior / found.allowed, 3),
            "gain": round(found.gain, 3),
            "spread": round(found.spread, 3),
            "claims": found.claims,
            "sign": found.sign,
        }


def same_shares(value: np.ndarray, chosen: np.ndarray, tries: int = 2_000) -> float:
    """Return the chance of values at least so different from the whole, by chi-square over samples of equal size."""
    if len(chosen) == 0 or len(chosen) == len(value):
        return 1.0
    rng, kinds = np.random.default_rng(1), int(value.max()) + 1
    expected = np.bincount(value, minlength=kinds) / len(value) * len(chosen)

    def far(of: np.ndarray) -> float:
        seen = np.bincount(of, minlength=kinds)
        return float((((seen - expected) ** 2)[expected > 0] / expected[expected > 0]).sum())

    own = far(value[chosen])
    drawn = [far(rng.choice(value, len(chosen), replace=False)) for _ in range(tries)]
    return (1 + sum(each >= own for each in drawn)) / (1 + tries)


def main() -> None:
    """Attack every case and print it as it is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and hierarchies/: attack that table instead")
    parser.add_argument("--algorithm", nargs="+", choices=(*STREAM, *BATCH), default=USUAL)
    parser.add_argument("--model", nargs="+", help="all, if not given")
    parser.add_argument("--rare", nargs="+", type=float, default=[0.01, 0.05, 0.2], help="share of the rare values")
    parser.add_argument("--values", nargs="+", type=int, default=[2, 20], help="how many values there are")
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--replays", type=int, default=60, help="groups that are replayed")
    parser.add_argument("--seed", type=int, default=8, help="of the made-up table")
    parser.add_argument("--json", action="store_true", help="one line of JSON per attacker")
    arguments = parser.parse_args()
    if arguments.data is not None:
        grounds = [adult_ground(arguments.data, name, arguments.rows) for name in ("occupation", "salary-class")]
    else:
        pairs = [(rare, n) for n in arguments.values for rare in arguments.rare]
        grounds = [made_ground(rare, n, arguments.rows, arguments.seed) for rare, n in pairs]
    for ground in grounds:
        for name, model in models(ground.share).items():
            for algorithm in arguments.algorithm if name in (arguments.model or [name]) else ():
                if MADE_FOR.get(algorithm, name) != name:
                    continue
                for case in attack(algorithm, model, ground, arguments.replays):
                    case = {"algorithm": algorithm, "model": name, "table": ground.name} | case
                    told = "  ".join(str(part) for part in case.values())
                    print(json.dumps(case) if arguments.json else told, flush=True)


if __name__ == "__main__":
    main()
