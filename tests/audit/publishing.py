"""Published files made by the real anonymizers from small made-up tables, of every kind of hierarchy and model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stream_anon.auditor.auditor import audit_file
from stream_anon.auditor.policy import Rules, read_rules
from stream_anon.auditor.raw.original import read_original
from stream_anon.auditor.result import AuditResult
from stream_anon.core.schema import Schema
from stream_anon.formats.tables import read_parts
from stream_anon.formats.writers import new_file, writer_for
from stream_anon.local.anonymize import Anonymization
from stream_anon.policy import load
from stream_anon.replay.replay import Instants, Replay

Record = dict[str, Any]
ON = {"attribute": "ill"}
K = {"model": "k_anonymity", "k": 4}
REFERENCE = {"flu": 6, "cough": 4, "asthma": 3, "ulcer": 3, "gastritis": 2, "colitis": 2}
DEMANDS = {"ulcer": {"l": 3, "sensitivity": 0.9}, "flu": {"l": 2, "sensitivity": 0.1}}
CLOSE = {"model": "t_closeness"} | ON
MODELS: dict[str, list[dict[str, Any]]] = {
    "k": [K],
    "distinct": [K, {"model": "l_diversity", "l": 3} | ON],
    "entropy": [K, {"model": "l_diversity", "l": 2, "variant": "entropy"} | ON],
    "recursive": [K, {"model": "l_diversity", "l": 2, "variant": "recursive", "c": 2.0} | ON],
    "lc": [K, {"model": "lc_anonymity", "l": 2, "c": 0.6, "values": DEMANDS} | ON],
    "alpha": [{"model": "alpha_k", "k": 4, "alpha": {"flu": 0.5, "ulcer": 0.4}, "default": 0.75} | ON],
    "wishes": [{"model": "alpha_k", "k": 4, "estimate": {"after": 30}, "floor": 0.4} | ON],
    "t": [K, CLOSE | {"t": 0.45, "reference": REFERENCE}],
    "ordered t": [K, CLOSE | {"t": 0.4, "distance": "ordered", "reference": REFERENCE}],
    "guards": [K, {"model": "guarding_node", "p": 0.6} | ON],
}

ILLNESSES = {"any": {"lung": ["flu", "cough", "asthma"], "stomach": ["ulcer", "gastritis"], "gut": ["colitis"]}}
JOBS = "nurse;clinic;*\ndoctor;clinic;*\ncook;kitchen;*\nbaker;kitchen;*\nclerk;clerk;*\n"


def quasi(type_: str, weight: float = 1.0, **hierarchy: Any) -> dict[str, Any]:
    return {"role": "quasi_identifier", "type": type_, "weight": weight, "hierarchy": hierarchy}


WHO = {"who": {"role": "identifier"}}
ILL = {
    "ill": {
        "role": "sensitive", "hierarchy": {"kind": "tree", "tree": ILLNESSES}, "guarding_node": "guard", "psf": "wish",
    }
}  # fmt: skip
WARD = {"ward": {"role": "insensitive"}}
AGE = {"age": quasi("integer", kind="interval", range=[18, 90], snap="none")}
ZIP = {"zip": quasi("category", kind="prefix", length=3)}
SEX = {"sex": quasi("category", kind="flat", values=["f", "m"])}
SHAPES: dict[str, dict[str, Any]] = {
    "plain": WHO | AGE | ZIP | SEX | ILL | WARD,
    "grids": WHO
    | {"age": quasi("integer", 2.0, kind="interval", range=[18, 90], snap=[4, 12])}
    | {"kilos": quasi("number", kind="interval", range=[40, 120.5], step=0.5, snap="none")}
    | {"job": quasi("category", 0.5, kind="csv", path="jobs.csv")}
    | ILL
    | WARD,
    "times": WHO
    | {"came": quasi("timestamp", kind="calendar", levels=["hour", "day", "week", "month", "quarter"])}
    | {"income": quasi("integer", kind="interval", scale=50_000, snap=[1000])}
    | {"home.zip": quasi("category", kind="prefix", length=3) | {"missing": "leaf", "unknown": "leaf"}}
    | ILL
    | {"home.ward": {"role": "insensitive"}},
    "gaps": WHO
    | {"age": quasi("integer", kind="interval", range=[18, 90], snap="none") | {"missing": "leaf"}}
    | {"sex": quasi("category", kind="flat", values=["f", "m"]) | {"missing": "leaf"}}
    | ILL
    | {"pay": {"role": "sensitive", "type": "integer"}},
    "sets": WHO
    | {"sex": quasi("category", kind="set", values=["f", "m"])}
    | {"job": quasi("category", kind="set", values=["nurse", "doctor", "cook", "baker", "clerk"])}
    | AGE
    | ILL
    | WARD,
}


def people(count: int, seed: int, persons: int | None = None, gaps: bool = False) -> list[Record]:
    """Uneven, dependent records; several of one person if `persons` is given, some values missing with `gaps`."""
    rng = np.random.default_rng(seed)
    guards = {"flu": "lung", "cough": "cough", "asthma": "", "ulcer": "stomach", "gastritis": "", "colitis": ""}
    ill = rng.choice(list(guards), count, p=np.array([6, 4, 3, 3, 2, 2]) / 20).tolist()
    found: list[Record] = []
    for i in range(count):
        region = int(rng.integers(4))
        record = {
            "who": f"p{rng.integers(persons) if persons else i}",
            "age": int(np.clip(rng.normal(35 + 8 * region, 9), 18, 90)),
            "kilos": round(float(rng.uniform(40, 120.4)), 1),
            "zip": f"0{region}{rng.integers(10)}",
            "sex": "fm"[int(rng.integers(2))],
            "job": str(rng.choice(["nurse", "doctor", "cook", "baker", "clerk"])),
            "came": f"2026-0{1 + rng.integers(9)}-{1 + rng.integers(28):02d}T{rng.integers(24):02d}:15:00Z",
            "income": int(rng.integers(0, 40)) * 500,
            "home": {"zip": f"0{region}{rng.integers(10)}", "ward": "abc"[i % 3]},
            "ill": ill[i],
            "guard": guards[ill[i]] if rng.random() < 0.3 else "",
            "wish": int(rng.integers(-1, 2)),
            "pay": int(rng.integers(5)),
            "ward": "abc"[i % 3],
            "phone": f"555-{i:04d}",
        }
        if gaps and rng.random() < 0.2:
            record |= {"age": None, "sex": None}
        if gaps and rng.random() < 0.2:
            record["home"] = {"zip": None if i % 2 else "nowhere", "ward": "a"}
        found.append(record)
    return found


@dataclass(frozen=True)
class Published:
    """The files of one run."""

    policy: Path
    raw: Path
    out: Path

    @property
    def rules(self) -> Rules:
        return read_rules(self.policy)

    def audit(self, raw: bool = False) -> AuditResult:
        rules = self.rules
        return audit_file(self.out, rules, read_original(self.raw, rules) if raw else None)

    def records(self) -> list[Record]:
        return [json.loads(line) for line in self.out.read_text().splitlines()]


def publish(
    folder: Path,
    shape: str,
    model: str,
    algorithm: str | Mapping[str, Any],
    records: Sequence[Record],
    suffix: str = ".jsonl",
    subject: str | None = "who",
    delay: int = 40,
    **settings: Any,
) -> Published:
    """Run a batch algorithm by its name, or the stream's by its settings."""
    policy: dict[str, Any] = {"version": 1, "name": "table", "secret": "0123456789abcdef0123456789abcdef"}
    policy |= {"attributes": SHAPES[shape], "privacy": MODELS[model]} | settings
    policy |= {"subject": subject} if subject else {}
    policy["stream"] = {"max_delay": {"records": delay}}
    if not isinstance(algorithm, str):
        policy["algorithm"] = dict(algorithm)
    (folder / "jobs.csv").write_text(JOBS)
    made = Published(folder / "policy.yaml", folder / "raw.jsonl", folder / f"out{suffix}")
    made.policy.write_text(json.dumps(policy))  # JSON is YAML, and keeps the order of the columns
    made.raw.write_text("".join(json.dumps(record) + "\n" for record in records))
    schema = Schema.compile(load(made.policy, {}))
    with new_file(made.out, overwrite=True) as file:
        _run(schema, algorithm, made.raw, writer_for(made.out, file))
    return made


def _run(schema: Schema, algorithm: str | Mapping[str, Any], raw: Path, writer: Any) -> None:
    if isinstance(algorithm, str):
        batch = Anonymization(schema, algorithm)
        batch.read(read_parts(raw), _no_rejections, _ignore)
        batch.divide(_ignore)
        batch.write(writer, _ignore)
    else:
        Replay(schema, Instants(None, 100.0), None, writer).run(read_parts(raw), _no_rejections, _ignore)


def _no_rejections(rejections: Sequence[Any]) -> None:
    raise AssertionError(rejections[:3])


def _ignore(share: float) -> None:
    """Nobody looks at the progress."""
