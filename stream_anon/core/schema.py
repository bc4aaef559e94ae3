"""A policy made ready for work: hierarchies built, models built, prices packed, everything checked beforehand."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from stream_anon.core.fields import Action, ChangeSettings, Materials
from stream_anon.core.hierarchy import Counting, Hierarchy, Ints, Leaves, Tree, Trouble
from stream_anon.core.hierarchy.tree import text_of
from stream_anon.core.kernels import Prices, pack
from stream_anon.core.keys import MEMO_LIMIT, Keys, ValueHash, memo_keys
from stream_anon.core.privacy import ColumnModelSettings, Requirements
from stream_anon.core.privacy import build as build_models
from stream_anon.core.record_template import RecordTemplate
from stream_anon.core.spelling import EVERY_RULE, Spelling
from stream_anon.errors import Diagnostic, PolicyError, Problem
from stream_anon.policy import Policy
from stream_anon.policy.attributes import Identifier, Insensitive, QuasiIdentifier, Sensitive
from stream_anon.policy.rules import problems as rule_problems

OUTPUT_FORMAT = 2
"""Raised whenever the same group would be written differently, so that nothing is published again in another form."""


class Loaded(Protocol):
    """A policy together with the place it came from."""

    @property
    def policy(self) -> Policy:
        """The policy that was loaded."""
        ...

    @property
    def folder(self) -> Path:
        """Where the files it names are sought."""
        ...

    def diagnostics(self, found: Sequence[Problem]) -> list[Diagnostic]:
        """Return the problems with their places."""
        ...


@dataclass(frozen=True, slots=True)
class _InMemory:
    """A policy without the text of a file: findings name the place by its path."""

    policy: Policy

    @property
    def folder(self) -> Path:
        """Where the files it names are sought."""
        return self.policy.folder

    def diagnostics(self, found: Sequence[Problem]) -> list[Diagnostic]:
        """Return the problems with the paths of the words to change."""
        return [
            Diagnostic(p.code, p.message, ".".join(["policy", *map(str, p.path)]), hint=p.hint, severity=p.severity)
            for p in found
        ]


@dataclass(frozen=True, slots=True)
class QuasiColumn:
    """A quasi-identifier, ready to encode and generalize."""

    name: str
    type: str
    hierarchy: Hierarchy
    weight: float


@dataclass(frozen=True, slots=True)
class SensitiveColumn:
    """A sensitive attribute; with a hierarchy its codes are leaves, without one keyed hashes.

    Values are compared as `spelling` says. `missing` is the code of a value that is not there, None if such a record is
    rejected: it is published, and no model counts it as a value.
    """

    name: str
    type: str
    hierarchy: Hierarchy | None
    guard_field: str | None
    psf_field: str | None
    missing_allowed: bool
    spelling: Spelling
    _hash: ValueHash
    _labels: Mapping[Any, Any]
    _codes: dict[Any, int] = field(default_factory=dict)

    def encode(self, values: Sequence[Any]) -> tuple[Ints, Ints | None]:
        """Return codes of values, and which of them have none."""
        if self.hierarchy is not None:
            return self._leaves(self.hierarchy, values) if self._labels else self.hierarchy.encode(values)
        codes = self._hash(values)
        missing = (codes == self._hash.missing) * int(Trouble.MISSING)
        return codes, missing if missing.any() and not self.missing_allowed else None

    def _leaves(self, hierarchy: Hierarchy, values: Sequence[Any]) -> tuple[Ints, Ints | None]:
        """Return the leaves that values are spelled like; those seen before are known by heart."""
        known = memo_keys(values)
        try:
            return np.fromiter(map(self._codes.__getitem__, known), np.int64, len(values)), None
        except KeyError:
            codes, trouble = hierarchy.encode(list(map(self._labels.__getitem__, known)))
            if len(self._codes) > MEMO_LIMIT:
                self._codes.clear()
            if trouble is None:
                self._codes.update(zip(known, codes.tolist(), strict=True))
            return codes, trouble

    @property
    def missing(self) -> int | None:
        """The code of a value that is not there, None if such a record is rejected."""
        return int(self.encode([None])[0][0]) if self.missing_allowed else None


class Labels(dict[Any, Any]):
    """From a value as it came to the label of the leaf it is spelled like; forgets all when there are too many.

    A word for nothing becomes None, unless it is a label itself. What is spelled like no leaf stays as it is.
    """

    def __init__(self, tree: Tree, spelling: Spelling) -> None:
        super().__init__()
        own = tree.labels[: tree.top]
        self._exact, self._spelling = frozenset(own), spelling
        self._leaf = {spelling(label): label for label in own}
        self.alike = len(own) - len(self._leaf)
        self[None] = None  # never empty

    def __missing__(self, value: Any) -> Any:
        if len(self) > MEMO_LIMIT:
            self.clear()
        text: Any = text_of(value)
        if text not in self._exact:
            folded = self._spelling(value)
            text = self._leaf.get(folded, None if folded is None else value)
        self[value] = text
        return text


@dataclass(frozen=True, slots=True)
class Schema:
    """What the core knows of a policy. `published` are the columns of which each record has a value of its own.

    They are published as they came, but for those that have an action. `lists` are those of them that may hold a list
    of scalars; all others hold scalars.
    """

    policy: Policy
    quasi: tuple[QuasiColumn, ...]
    sensitive: tuple[SensitiveColumn, ...]
    published: tuple[str, ...]
    lists: frozenset[str]
    actions: Mapping[str, Action]
    subject: str | None
    naming: Spelling
    requirements: Requirements
    keys: Keys = field(repr=False)
    prices: Prices = field(repr=False)
    template: RecordTemplate = field(repr=False)
    fingerprint: str

    @property
    def numbers_with_words(self) -> list[str]:
        """The numeric quasi-identifiers in which a word, like "unknown", is a value outside the hierarchy."""
        declared = self.policy.attributes
        numeric = [column.name for column in self.quasi if column.type in ("integer", "number")]
        return [name for name in numeric if getattr(declared.get(name), "unknown", "") == "leaf"]

    @property
    def counts(self) -> Literal["people", "records"]:
        """What k counts: without a subject nobody knows which records are one person's."""
        return "people" if self.subject else "records"

    def counted(self, counting: Counting) -> tuple[Prices, list[Hierarchy]]:
        """Prices by which an algorithm may choose: shares as published, or nodes of trees summed by weight."""
        hierarchies = [h.recounted(counting) if isinstance(h := c.hierarchy, Tree) else h for c in self.quasi]
        if counting == "ncp":
            return self.prices, hierarchies
        return pack(hierarchies, [column.weight for column in self.quasi]), hierarchies

    @classmethod
    def of(cls, policy: Policy) -> Schema:
        """Build and check everything for a policy, whether or not it came from a file."""
        if not isinstance(policy, Policy):
            read = "load_policy(path) reads one from a file, Policy.model_validate(data) makes one of a mapping"
            raise TypeError(f"a Policy is needed, not a {type(policy).__name__}: {read}")
        return cls.compile(_InMemory(policy))

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
                    built[name] = attribute.hierarchy.build(loaded.folder, leaves)
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
        sensitive = tuple(_sensitive(name, a, built.get(name), policy, keys) for name, a in policy.sensitive.items())
        alike = [_alike(column) for column in sensitive if getattr(column._labels, "alike", 0)]
        if alike:
            raise PolicyError(loaded.diagnostics(alike))
        requirements, problems = build_models(policy.privacy, sensitive, tables)
        if problems:
            raise PolicyError(loaded.diagnostics(problems))
        fingerprint = _fingerprint(policy, [h for h in built.values() if h is not None], tables)
        named = [(column.name, column.hierarchy) for column in quasi]
        return cls(
            policy=policy,
            quasi=quasi,
            sensitive=sensitive,
            published=policy.published,
            lists=frozenset(name for name, a in policy.attributes.items() if isinstance(a, Insensitive) and a.list),
            actions=_actions(policy, keys),
            subject=policy.subject,
            naming=_naming(policy),
            requirements=requirements,
            keys=keys,
            prices=pack([column.hierarchy for column in quasi], _shares([column.weight for column in quasi])),
            template=RecordTemplate(named, policy.published, f"{policy.name}@{fingerprint[:6]}"),
            fingerprint=fingerprint,
        )


def _naming(policy: Policy) -> Spelling:
    """Return how the texts that name people are compared."""
    named = policy.attributes.get(policy.subject or "")
    return Spelling(named.normalize if isinstance(named, Identifier) else EVERY_RULE, policy.missing_values)


def _actions(policy: Policy, keys: Keys) -> dict[str, Action]:
    """Return what is done to columns before they are published, by their names."""
    identifiers = tuple(name for name, a in policy.attributes.items() if isinstance(a, Identifier))
    found: dict[str, Action] = {}
    for name in policy.published:
        attribute, settings = policy.attributes[name], policy.publish(name)
        if isinstance(settings, ChangeSettings):
            rules = EVERY_RULE if isinstance(attribute, Insensitive | QuasiIdentifier) else attribute.normalize
            spelling = Spelling(rules, policy.missing_values)
            materials = Materials(policy.name, name, keys, spelling, _naming(policy), policy.subject, identifiers)
            found[name] = Action.of(settings, materials, null=isinstance(attribute, Sensitive))
    return found


def _sensitive(
    name: str, attribute: Sensitive, hierarchy: Hierarchy | None, policy: Policy, keys: Keys
) -> SensitiveColumn:
    spelling = Spelling(attribute.normalize, policy.missing_values)
    return SensitiveColumn(
        name=name,
        type=attribute.type,
        hierarchy=hierarchy,
        guard_field=attribute.guarding_node,
        psf_field=attribute.psf,
        missing_allowed=attribute.missing == "leaf",
        spelling=spelling,
        _hash=ValueHash(keys.value, spelling),
        _labels=Labels(hierarchy, spelling) if isinstance(hierarchy, Tree) else {},
    )


def _alike(column: SensitiveColumn) -> Problem:
    return Problem(
        ("attributes", column.name, "hierarchy"),
        "leaves-alike",
        "two leaves are one value when case, surrounding space and Unicode forms do not count",
        "keep one of them, or say which differences count: normalize: [space, unicode]",
    )


def _shares(weights: Sequence[float]) -> list[float]:
    """Weights that sum to 1, so that the loss of a row does too."""
    return [weight / sum(weights) for weight in weights]


def _read_tables(policy: Policy, folder: Path) -> tuple[dict[int, dict[str, Any]], list[Diagnostic]]:
    """Return the tables that models name by file, and what is wrong with them."""
    tables: dict[int, dict[str, Any]] = {}
    found: list[Diagnostic] = []
    for i, spec in enumerate(policy.privacy):
        if not isinstance(spec, ColumnModelSettings):
            continue
        try:
            table = spec.read_table(folder)
            if table is not None:
                tables[i] = dict(table)
        except PolicyError as error:
            found.extend(error.diagnostics)
    return tables, found


def _fingerprint(policy: Policy, hierarchies: Sequence[Hierarchy], tables: dict[int, dict[str, Any]]) -> str:
    """Return a digest that changes whenever the same rows could be published differently."""
    digest = hashlib.blake2b(digest_size=16)
    parts = policy.model_dump_json(include={"name", "subject", "attributes", "privacy", "missing_values"})
    for part in (str(OUTPUT_FORMAT), parts, *(h.signature() for h in hierarchies), repr(sorted(tables.items()))):
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()
