"""Small makers of what the tests of the core judge: batches from plain columns, schemas from a policy's text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stream_anon.core.batch import NO_GUARD, UNNUMBERED, Batch
from stream_anon.core.schema import Schema
from stream_anon.policy import load

PATIENTS = """
version: 1
name: patients
subject: patient
secret: {secret}
attributes:
  patient: {{role: identifier}}
  name: {{role: identifier}}
  age: {{role: quasi_identifier, type: integer, hierarchy: {{kind: interval, range: [0, 120], snap: none}}}}
  home.zip: {{role: quasi_identifier, type: category, hierarchy: {{kind: prefix, length: 5}}}}
  illness:
    role: sensitive
    guarding_node: guard
    psf: wish
    hierarchy: {{kind: tree, tree: {{any: {{stomach: [ulcer, gastritis], lung: [flu, cough, asthma]}}}}}}
  home.ward: {{role: insensitive}}
privacy:
{privacy}
"""


def compile_policy(folder: Path, text: str) -> Schema:
    """The schema of a policy written into the folder."""
    path = folder / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    return Schema.compile(load(path, {}))


def patients(folder: Path, *privacy: str, secret: str = "0123456789abcdef0123456789abcdef") -> Schema:
    """The schema of the policy above with the given models, k = 2 if none."""
    lines = privacy or ("{model: k_anonymity, k: 2}",)
    return compile_policy(folder, PATIENTS.format(secret=secret, privacy="\n".join(f"  - {line}" for line in lines)))


def batch(
    sensitive: Sequence[int] | Sequence[Sequence[int]],
    subject: Sequence[int] | None = None,
    guard: Sequence[int] | None = None,
    psf: Sequence[int] | None = None,
    qi: Sequence[Sequence[int]] | None = None,
) -> Batch:
    """Rows with the given codes; subjects differ, nothing is guarded or asked for, unless said."""
    n = len(sensitive)
    codes = np.array(sensitive, dtype=np.int64).reshape(n, -1) if n else np.empty((0, 1), dtype=np.int64)

    def first(column: Sequence[int] | None, otherwise: int) -> np.ndarray:
        filled = np.full(codes.shape, otherwise, dtype=np.int64)
        if column is not None:
            filled[:, 0] = column
        return filled

    return Batch(
        qi=np.array(qi if qi is not None else [[0]] * n, dtype=np.int64).reshape(n, -1 if n else 1),
        sensitive=codes,
        guard=first(guard, NO_GUARD),
        psf=first(psf, 0),
        subject=np.array(range(n) if subject is None else subject, dtype=np.int64),
        arrived=np.zeros(n),
        ref=np.stack([np.zeros(n, dtype=np.int64), np.arange(n, dtype=np.int64)], axis=1),
        serial=np.full(n, UNNUMBERED, dtype=np.int64),
        values=np.empty((n, codes.shape[1]), dtype=object),
    )
