"""What the papers' experiments share: the table with its first attributes as quasi-identifiers, claims, JSON and plots.

The folder holds `adult.csv` with a header, all 45,222 rows, and `hierarchies/*.csv` in ARX's form.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stream_anon.batch import build, partition
from stream_anon.batch.l_incognito import LIncognito
from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoder
from stream_anon.core.hierarchy import Ints
from stream_anon.core.loss.uncertainty import uncertainty
from stream_anon.core.schema import Schema
from stream_anon.errors import Diagnostic, Problem
from stream_anon.policy import Policy

ORDER = ("age", "sex", "race", "marital-status", "education", "native-country", "workclass", "salary-class")
"""The quasi-identifiers of the experiments on L-clustering: the first d of them are used."""

SENSITIVE = "occupation"


@dataclass(frozen=True)
class Made:
    """A policy made here; the hierarchies are found in `folder`."""

    policy: Policy
    folder: Path

    def diagnostics(self, found: Sequence[Problem]) -> list[Diagnostic]:
        """Return the problems, without a place."""
        return [Diagnostic(problem.code, problem.message, "(made here)", hint=problem.hint) for problem in found]


@dataclass
class Experiment:
    """One script: its table, its claims and what it measured."""

    name: str
    data: Path
    out: Path
    limit: int
    quick: bool
    rows: list[dict[str, Any]]
    points: list[dict[str, Any]] = field(default_factory=list)
    claims: list[dict[str, Any]] = field(default_factory=list)

    def schema(self, quasi: Sequence[str], privacy: Sequence[Mapping[str, Any]]) -> Schema:
        """Return the schema with these quasi-identifiers."""
        attributes: dict[str, Any] = {}
        for name in quasi:
            age = {"kind": "interval", "range": [17, 90], "snap": "none"}
            tree = {"kind": "csv", "path": f"{name}.csv"}
            kind = {"type": "integer", "hierarchy": age} if name == "age" else {"type": "category", "hierarchy": tree}
            attributes[name] = {"role": "quasi_identifier"} | kind
        attributes[SENSITIVE] = {"role": "sensitive", "psf": "psf"}
        models = [{"model": "k_anonymity", "k": 2}, *(dict(model) for model in privacy)]
        policy = {"version": 1, "name": "paper", "secret": "a secret for experiments only", "privacy": models}
        made = Policy.model_validate(policy | {"attributes": attributes})
        return Schema.compile(Made(made, self.data / "hierarchies"))

    def encoded(self, schema: Schema) -> Batch:
        """Return the rows under a schema."""
        n = len(self.rows)
        ref = np.stack([np.zeros(n, dtype=np.int64), np.arange(n)], axis=1)
        encoded = Encoder(schema).encode(self.rows, ref, np.zeros(n))
        if encoded.rejections:
            sys.exit(f"{len(encoded.rejections)} rows were rejected: {encoded.rejections[0]}")
        return encoded.batch

    def clustering(self, width: int, l: int, seed: int = 0) -> dict[str, Any]:  # noqa: E741
        """L-clustering and L-incognito on the first `width` attributes: loss in bits, relative loss, CPU seconds."""
        schema = self.schema(ORDER[:width], [{"model": "l_diversity", "attribute": SENSITIVE, "l": l}])
        rows = self.encoded(schema)
        ordered = [name == "age" for name in ORDER[:width]]
        begin = time.process_time()
        found = partition("l-clustering", rows, schema, seed=seed)
        spent = time.process_time() - begin
        full = build("l-incognito", {"measure": "entropy"})
        assert isinstance(full, LIncognito)
        begin = time.process_time()
        node = full.node_of(rows, schema)
        spent_full = time.process_time() - begin
        columns = full.columns_of(rows, schema)
        levels = node or tuple(len(column.cells) - 1 for column in columns)
        bits = sum(float(column.bits[level]) for column, level in zip(columns, levels, strict=True))
        everything = table_bits(rows.qi, [np.arange(len(rows))], ordered)
        loss = table_bits(rows.qi, found.classes, ordered)
        point = {
            "attributes": width,
            "l": l,
            "seed": seed,
            "loss": round(loss, 3),
            "full_domain_loss": round(bits * len(rows), 1),
            "relative_loss": loss / everything,
            "full_domain_relative_loss": min(bits * len(rows) / everything, 1.0),
            "cpu_seconds": round(spent, 3),
            "full_domain_cpu_seconds": round(spent_full, 3),
            "node": list(levels),
        }
        self.points.append(point)
        print(json.dumps(point), flush=True)
        return point

    def claim(self, text: str, held: bool) -> None:
        """Note whether a direction that the paper names was seen."""
        self.claims.append({"claim": text, "held": bool(held)})
        print(f"{'held' if held else 'NOT HELD'}: {text}", flush=True)

    def finish(self, draw: Any = None) -> None:
        """Write JSON and, where matplotlib is installed, the plot; leave with 1 if a claim did not hold."""
        self.out.mkdir(parents=True, exist_ok=True)
        found = {"experiment": self.name, "rows": len(self.rows), "claims": self.claims, "points": self.points}
        (self.out / f"{self.name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        try:
            import matplotlib

            matplotlib.use("Agg")
            from matplotlib import pyplot
        except ImportError:
            print("no plot: pip install 'stream-anon[plot]'")
        else:
            if draw is not None:
                figure, axes = pyplot.subplots(figsize=(6, 4))
                draw(axes, self.points)
                axes.legend()
                figure.tight_layout()
                figure.savefig(self.out / f"{self.name}.png", dpi=120)
        sys.exit(0 if all(claim["held"] for claim in self.claims) else 1)


def start(name: str, description: str | None) -> Experiment:
    """Read the command line and the table."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True, help="folder with adult.csv and hierarchies/")
    parser.add_argument("--out", type=Path, default=Path("papers-out"), help="folder for JSON and plots")
    parser.add_argument("--rows", type=int, help="only the first rows")
    parser.add_argument("--quick", action="store_true", help="fewer points")
    arguments = parser.parse_args()
    with (arguments.data / "adult.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))[: arguments.rows]
    return Experiment(name, arguments.data, arguments.out, len(rows), arguments.quick, rows)


def table_bits(qi: Ints, classes: Sequence[Ints], ordered: Sequence[bool]) -> float:
    """Return the loss of a table in bits, as `Uncertainty.table_loss` gives it, for many classes at once."""
    sizes = np.array([len(index) for index in classes])
    starts, group = np.cumsum([0, *sizes[:-1]]), np.repeat(np.arange(len(classes)), sizes)
    members, total = qi[np.concatenate(list(classes))], 0.0
    for q, number in enumerate(ordered):
        column = members[:, q]
        if number:
            count = np.maximum.reduceat(column, starts) - np.minimum.reduceat(column, starts) + 1
        else:
            pairs = np.unique(group * (int(column.max()) + 1) + column)
            count = np.bincount(pairs // (int(column.max()) + 1), minlength=len(classes))
        total += float(uncertainty(count) @ sizes)
    return total


def shares_above(classes: Sequence[Ints], values: Ints, c: float) -> int:
    """Rows in a class where some value's share exceeds c: open to a skew attack."""
    exposed = 0
    for index in classes:
        most = int(np.unique(values[index], return_counts=True)[1].max())
        exposed += len(index) if most > c * len(index) + 1e-9 else 0
    return exposed
