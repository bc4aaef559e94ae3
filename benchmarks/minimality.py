"""Minimality attacks on every model and algorithm, on tables with rare values: can groups be read?

Each line is one attacker: how often it is right about somebody's value, beside what everybody may believe, the value's
share in the group or 1/l. `suppressed_p` is the chance that suppressed rows differ so much in their values from the
whole (chi-square).

    python benchmarks/minimality.py --json
    python benchmarks/minimality.py --algorithm cail sweep --model distinct --rare 0.05 --replays 100
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from stream_anon.core.batch import NO_GUARD, UNNUMBERED, Batch
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
"""The last three choose by value: k-member by what helps, the others by definition."""

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
    }


def delay(share: np.ndarray) -> int:
    """Return a bound in which some twenty rows of rare values arrive: fewer, and what waits cannot satisfy a model."""
    return max(300, int(20 / (1 - float(share.max()))))


def schema(privacy: list[dict[str, Any]], algorithm: dict[str, Any], share: np.ndarray) -> Schema:
    """Return a policy over three quasi-identifiers and one sensitive attribute."""
    leaves = [leaf for group in VALUES["tree"]["any"].values() for leaf in group]  # type: ignore[index]
    for model in privacy:
        if model.get("reference") == "REFERENCE":
            model["reference"] = {leaf: float(s) for leaf, s in zip(leaves, share, strict=False)}
    quasi = {"age": ("integer", AGES), "job": ("category", JOBS), "sex": ("category", SEX)}
    attributes: dict[str, Any] = {
        name: {"role": "quasi_identifier", "type": kind, "hierarchy": hierarchy}
        for name, (kind, hierarchy) in quasi.items()
    }
    return Schema.of(
        Policy.model_validate(
            {
                "version": 1,
                "name": "attacked",
                "secret": "a secret that the attacker does not know",
                "attributes": attributes | {"ill": {"role": "sensitive", "hierarchy": VALUES}},
                "privacy": privacy,
                "stream": {"max_delay": {"records": delay(share)}},
                "algorithm": algorithm,
            }
        )
    )


def made_up(share: np.ndarray, rows: int, seed: int = 8) -> Batch:
    """Return rows whose values have nothing to do with their quasi-identifiers."""
    rng, number = np.random.default_rng(seed), np.arange(rows)
    ages = np.clip(rng.normal(45, 18, rows), 0, 99).astype(np.int64)
    return Batch(
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


def run(of: Schema, rows: Batch, algorithm: str) -> Run:
    """Run a stream or a batch algorithm."""
    return StreamRun(of, rows) if algorithm in STREAM else BatchRun(of, rows, algorithm)


def attack(
    algorithm: str, model: dict[str, Any], share: np.ndarray, rows: Batch, replays: int
) -> Iterator[dict[str, Any]]:
    """Yield what each attacker achieves on one algorithm under one model."""
    settings = STREAM.get(algorithm, STREAM["cail"])
    people = {"model": "k_anonymity", "k": K}
    of = schema([people, {"attribute": "ill", **model}], settings, share)
    made = run(of, rows, algorithm)
    blind = made if algorithm in MADE_FOR else run(schema([people], settings, share), rows, algorithm)
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
    parser.add_argument("--algorithm", nargs="+", choices=(*STREAM, *BATCH), default=USUAL)
    parser.add_argument("--model", nargs="+", help="all, if not given")
    parser.add_argument("--rare", nargs="+", type=float, default=[0.01, 0.05, 0.2], help="share of the rare values")
    parser.add_argument("--values", nargs="+", type=int, default=[2, 20], help="how many values there are")
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--replays", type=int, default=60, help="groups that are replayed")
    parser.add_argument("--json", action="store_true", help="one line of JSON per attacker")
    arguments = parser.parse_args()
    for values in arguments.values:
        for rare in arguments.rare:
            share = shares(rare, values)
            rows = made_up(share, arguments.rows)
            for name, model in models(share).items():
                for algorithm in arguments.algorithm if name in (arguments.model or [name]) else ():
                    if MADE_FOR.get(algorithm, name) != name:
                        continue
                    for case in attack(algorithm, model, share, rows, arguments.replays):
                        case = {"algorithm": algorithm, "model": name, "rare": rare, "values": values} | case
                        told = "  ".join(str(part) for part in case.values())
                        print(json.dumps(case) if arguments.json else told, flush=True)


if __name__ == "__main__":
    main()
