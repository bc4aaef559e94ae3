"""The table that benchmarks run on: UCI Adult from a folder, or a seeded table of the same shape made here.

The folder holds `adult.csv` (with a header) and `hierarchies/*.csv` (ARX's form, one file per attribute).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

import numpy as np

from stream_anon.core.schema import Schema
from stream_anon.policy import LoadedPolicy, load

QUASI = ("age", "workclass", "education", "marital-status", "race", "sex", "native-country")
SENSITIVE = "occupation"
AGES = (17, 90)

SHAPE = {
    # attribute: (values, values per inner node), as in the real table; race and sex are flat
    "workclass": (7, 3),
    "education": (16, 4),
    "marital-status": (7, 3),
    "race": (5, 5),
    "sex": (2, 2),
    "native-country": (41, 8),
    "occupation": (14, 4),
}

Row = dict[str, str | int]


@dataclass(frozen=True)
class Table:
    """Rows, and a schema whose policy protects them."""

    name: str
    rows: list[Row]
    schema: Schema

    def payloads(self) -> list[bytes]:
        """Return the rows as JSON records."""
        return [json.dumps(row).encode() for row in self.rows]


@dataclass(frozen=True)
class Source:
    """Rows, and the policy from which schemas for them are made."""

    name: str
    rows: list[Row]
    loaded: LoadedPolicy

    def schema(self, **changes: object) -> Schema:
        """Return the policy's schema, with other settings in place of its own."""
        policy = self.loaded.policy.model_copy(update=changes)
        return Schema.compile(replace(self.loaded, policy=policy))


@contextmanager
def source(folder: Path | None, k: int = 5, limit: int | None = None, seed: int = 7) -> Iterator[Source]:
    """Adult from the folder, or a synthetic table; the first `limit` rows of it."""
    with TemporaryDirectory() as made:
        place = Path(made)
        rows = _read(folder, place) if folder else _make(place, limit or 30_162, seed)
        (place / "policy.yaml").write_text(_policy(k), encoding="utf-8")
        yield Source("adult" if folder else "synthetic", rows[:limit], load(place / "policy.yaml", {}))


def table(folder: Path | None, k: int = 5, limit: int | None = None, seed: int = 7) -> Table:
    """Return the same with the schema of the policy as it is."""
    with source(folder, k, limit, seed) as found:
        return Table(found.name, found.rows, found.schema())


def _policy(k: int) -> str:
    ages = f"{{kind: interval, range: [{AGES[0]}, {AGES[1]}], snap: none}}"  # exact ends, as other tools publish them
    age = f"{{role: quasi_identifier, type: integer, hierarchy: {ages}}}"
    lines = [
        "version: 1",
        "name: adult",
        "secret: a-secret-of-a-benchmark-no-value",
        "attributes:",
        f"  age: {age}",
    ]
    lines += [
        f"  {name}: {{role: quasi_identifier, type: category, hierarchy: {{kind: csv, path: {name}.csv}}}}"
        for name in QUASI[1:]
    ]
    lines += [f"  {SENSITIVE}: {{role: sensitive, hierarchy: {{kind: csv, path: {SENSITIVE}.csv}}}}"]
    lines += ["privacy:", f"  - {{model: k_anonymity, k: {k}}}", ""]
    return "\n".join(lines)


def _read(folder: Path, place: Path) -> list[Row]:
    for name in (*QUASI[1:], SENSITIVE):
        copyfile(folder / "hierarchies" / f"{name}.csv", place / f"{name}.csv")
    with (folder / "adult.csv").open(encoding="utf-8", newline="") as file:
        return [row | {"age": int(row["age"])} for row in csv.DictReader(file)]


def _make(place: Path, count: int, seed: int) -> list[Row]:
    """Values with the uneven frequencies of real ones: the i-th of n has weight 1 / i."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[str]] = {}
    for name, (values, family) in SHAPE.items():
        labels = [f"{name}-{i:02d}" for i in range(values)]
        middle = [] if family >= values else [f"{name}-group-{i // family}" for i in range(values)]
        lines = [";".join([label, *middle[i : i + 1], "*"]) for i, label in enumerate(labels)]
        (place / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        weights = 1 / np.arange(1, values + 1)
        columns[name] = rng.choice(labels, count, p=weights / weights.sum()).tolist()
    ages = np.clip(rng.gamma(8.0, 2.7, count) + AGES[0], *AGES).astype(int).tolist()
    names = list(columns)
    return [
        {"age": age} | dict(zip(names, values, strict=True))
        for age, values in zip(ages, zip(*columns.values(), strict=True), strict=True)
    ]
