"""A policy made ready for work: hierarchies built, models built, prices packed, everything checked beforehand."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from stream_anon.core.form import Form
from stream_anon.core.hierarchy import Counting, Hierarchy, Ints, Leaves, Tree, Trouble, build
from stream_anon.core.kernels import Prices, pack
from stream_anon.core.keys import Keys, ValueHash
from stream_anon.core.privacy import Requirements
from stream_anon.core.privacy import build as build_models
from stream_anon.errors import Diagnostic, PolicyError, Problem
from stream_anon.policy import Policy
from stream_anon.policy.attributes import QuasiIdentifier, Sensitive
from stream_anon.policy.privacy import AlphaK, LCAnonymity, TCloseness
from stream_anon.policy.rules import problems as rule_problems
from stream_anon.policy.tables import read_alphas, read_protections, read_weights

OUTPUT_FORMAT = 1
"""Raised whenever the same group would be written differently, so that nothing is published again in another form."""


class Loaded(Protocol):
    """A policy together with the place it came from."""

    @property
    def policy(self) -> Policy:
        """The policy."""
        ...

    @property
    def folder(self) -> Path:
        """Where the files it names are sought."""
        ...

    def diagnostics(self, found: Sequence[Problem]) -> list[Diagnostic]:
        """The problems with their places."""
        ...


@dataclass(frozen=True, slots=True)
class QuasiColumn:
    """A quasi-identifier, ready to encode and generalize."""

    name: str
    type: str
    hierarchy: Hierarchy
    weight: float


@dataclass(frozen=True, slots=True)
class SensitiveColumn:
    """A sensitive attribute; with a hierarchy its codes are leaves, without one keyed hashes."""

    name: str
    type: str
    hierarchy: Hierarchy | None
    guard_field: str | None
    psf_field: str | None
    missing_allowed: bool
    _hash: ValueHash

    def encode(self, values: Sequence[Any]) -> tuple[Ints, Ints | None]:
        """Codes of values, and which of them have none."""
        if self.hierarchy is not None:
            return self.hierarchy.encode(values)
        missing = np.array([value is None for value in values], dtype=np.int64) * int(Trouble.MISSING)
        return self._hash(values), missing if missing.any() and not self.missing_allowed else None


@dataclass(frozen=True, slots=True)
class Schema:
    """What the core knows of a policy. `published` are the columns whose values are published as they came."""

    policy: Policy
    quasi: tuple[QuasiColumn, ...]
    sensitive: tuple[SensitiveColumn, ...]
    published: tuple[str, ...]
    subject: str | None
    requirements: Requirements
    keys: Keys = field(repr=False)
    prices: Prices = field(repr=False)
    form: Form = field(repr=False)
    fingerprint: str

    def counted(self, counting: Counting) -> tuple[Prices, list[Hierarchy]]:
        """Prices by which an algorithm may choose: shares as published, or nodes of trees summed by weight."""
        hierarchies = [h.recounted(counting) if isinstance(h := c.hierarchy, Tree) else h for c in self.quasi]
        if counting == "ncp":
            return self.prices, hierarchies
        return pack(hierarchies, [column.weight for column in self.quasi]), hierarchies

    @classmethod
    def compile(cls, loaded: Loaded) -> Schema:
        """Build and check everything; raises PolicyError with all findings at once."""
        policy = loaded.policy
        found: list[Diagnostic] = loaded.diagnostics(rule_problems(policy))
        if any(d.severity == "error" for d in found):
            raise PolicyError(found)
        found = []
        keys = Keys(policy.secret.get_secret_value() if policy.secret is not None else None)
        built: dict[str, Hierarchy | None] = {}
        for name, attribute in policy.attributes.items():
            if isinstance(attribute, QuasiIdentifier | Sensitive) and attribute.hierarchy is not None:
                leaves = Leaves(attribute.missing == "leaf", attribute.unknown == "leaf")
                try:
                    built[name] = build(attribute.hierarchy, loaded.folder, leaves)
                except PolicyError as error:
                    found.extend(error.diagnostics)
        tables, broken = _read_tables(policy, loaded.folder)
        found.extend(broken)
        if found:
            raise PolicyError(found)
        quasi = tuple(
            QuasiColumn(name, a.type, hierarchy, a.weight)
            for name, a in policy.quasi_identifiers.items()
            if (hierarchy := built[name]) is not None
        )
        sensitive = tuple(
            SensitiveColumn(
                name, a.type, built.get(name), a.guarding_node, a.psf, a.missing == "leaf", ValueHash(keys.value)
            )
            for name, a in policy.sensitive.items()
        )
        requirements, problems = build_models(policy.privacy, sensitive, tables)
        if problems:
            raise PolicyError(loaded.diagnostics(problems))
        fingerprint = _fingerprint(policy, [h for h in built.values() if h is not None], tables)
        named = [(column.name, column.hierarchy) for column in quasi]
        return cls(
            policy=policy,
            quasi=quasi,
            sensitive=sensitive,
            published=policy.published_as_is,
            subject=policy.subject,
            requirements=requirements,
            keys=keys,
            prices=pack([column.hierarchy for column in quasi], _shares([column.weight for column in quasi])),
            form=Form(named, policy.published_as_is, f"{policy.name}@{fingerprint[:6]}"),
            fingerprint=fingerprint,
        )


def _shares(weights: Sequence[float]) -> list[float]:
    """Weights that sum to 1, so that the loss of a row does too."""
    return [weight / sum(weights) for weight in weights]


def _read_tables(policy: Policy, folder: Path) -> tuple[dict[int, dict[str, Any]], list[Diagnostic]]:
    """The tables that models name by file, and what is wrong with them."""
    tables: dict[int, dict[str, Any]] = {}
    found: list[Diagnostic] = []
    for i, spec in enumerate(policy.privacy):
        try:
            match spec:
                case LCAnonymity(values=str(name)):
                    tables[i] = dict(read_protections(folder / name, name))
                case AlphaK(alpha=str(name)):
                    tables[i] = dict(read_alphas(folder / name, name))
                case TCloseness(reference=str(name)):
                    tables[i] = dict(read_weights(folder / name, name))
        except PolicyError as error:
            found.extend(error.diagnostics)
    return tables, found


def _fingerprint(policy: Policy, hierarchies: Sequence[Hierarchy], tables: dict[int, dict[str, Any]]) -> str:
    """Changes whenever the same rows could be published differently."""
    digest = hashlib.blake2b(digest_size=16)
    parts = policy.model_dump_json(include={"name", "subject", "attributes", "privacy"})
    for part in (str(OUTPUT_FORMAT), parts, *(h.signature() for h in hierarchies), repr(sorted(tables.items()))):
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()
