"""Makers of tables for the batch algorithms: schemas from a policy's parts, rows from plain records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stream_anon.core.schema import Schema
from stream_anon.policy import load
from stream_anon.testing.contract.tables import ATTRIBUTES, ILLNESSES, JOBS, names, number, people, rows_of

__all__ = ["ATTRIBUTES", "ILLNESSES", "JOBS", "classes", "names", "number", "people", "rows_of", "schema_of"]


def schema_of(
    folder: Path, attributes: Mapping[str, Any], privacy: Sequence[Mapping[str, Any]], subject: str | None = None
) -> Schema:
    """The schema; a policy that does not say how many people a group needs asks for two."""
    policy = {
        "version": 1,
        "name": "table",
        "secret": "0123456789abcdef0123456789abcdef",
        "attributes": dict(attributes),
    }
    counted = any(model["model"] in ("k_anonymity", "alpha_k") for model in privacy)
    models = [*([] if counted else [{"model": "k_anonymity", "k": 2}]), *(dict(model) for model in privacy)]
    policy |= {"privacy": models} | ({"subject": subject} if subject else {})
    path = folder / "policy.yaml"
    path.write_text(json.dumps(policy), encoding="utf-8")  # JSON is YAML, and keeps the order of the columns
    return Schema.compile(load(path, {}))


def classes(found: Sequence[Any], first: int = 1) -> set[tuple[int, ...]]:
    return {tuple(sorted((index + first).tolist())) for index in found}
