"""A made-up hospital: records of people who do not exist, as many as wanted, the same ones for the same seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import as_file, files

import msgspec
import numpy as np
from pydantic import SecretStr

from stream_anon.policy import LoadedPolicy, load

_ZIPS = {"02": 0.45, "10": 0.3, "60": 0.15, "94": 0.1}
_COUNTRIES = {
    "United States": 0.7, "Mexico": 0.06, "Canada": 0.04, "Brazil": 0.02, "China": 0.04, "India": 0.04, "Japan": 0.01,
    "Vietnam": 0.02, "Germany": 0.02, "Poland": 0.02, "Italy": 0.02, "France": 0.01,
}  # fmt: skip
_DIAGNOSES = ["bronchitis", "flu", "pneumonia", "gastritis", "ulcer", "diabetes", "fracture", "hypertension"]
_WARDS = ["A", "B", "C"]
_BATCH = 1000
_SECRET = SecretStr("nobody in the made-up hospital has anything to hide")

FIELDS = ("patient_id", "name", "birth_year", "zip", "gender", "country", "diagnosis", "ward")
"""What a record has, in this order."""


def policy_text() -> str:
    """Return the text of the demo's policy."""
    return (files(__package__) / "admissions.yaml").read_text(encoding="utf-8")


def policy() -> LoadedPolicy:
    """Load the demo's policy, with a secret that is none, so that the same seed gives the same groups."""
    with as_file(files(__package__) / "admissions.yaml") as path:
        loaded = load(path)
    return replace(loaded, policy=loaded.policy.model_copy(update={"secret": _SECRET}))


def admissions(seed: int, people: int = 20_000) -> Iterator[bytes]:
    """Yield records without end. People come back: some records are about the same person as an earlier one."""
    facts, rng = np.random.default_rng(seed).spawn(2)  # what lasts of a person, and what happens day by day
    born = np.clip(2026 - facts.gamma(4.0, 11.0, people), 1930, 2026).astype(int)
    home = facts.choice(list(_ZIPS), people, p=list(_ZIPS.values()))
    street = (facts.beta(1.2, 3.0, people) * 1000).astype(int)
    gender = facts.choice(["female", "male", "other"], people, p=[0.51, 0.48, 0.01])
    country = facts.choice(list(_COUNTRIES), people, p=list(_COUNTRIES.values()))
    while True:
        person = rng.integers(0, people, _BATCH)
        illness = rng.choice(_DIAGNOSES, _BATCH, p=[0.12, 0.22, 0.1, 0.14, 0.06, 0.12, 0.1, 0.14])
        ward = rng.choice(_WARDS, _BATCH)
        for i, p in enumerate(person.tolist()):
            yield msgspec.json.encode(
                {
                    "patient_id": f"P{p:06d}",
                    "name": f"Person {p}",
                    "birth_year": int(born[p]),
                    "zip": f"{home[p]}{street[p]:03d}",
                    "gender": str(gender[p]),
                    "country": str(country[p]),
                    "diagnosis": str(illness[i]),
                    "ward": str(ward[i]),
                }
            )
