"""The auditor's own policy reader: what may be published in which form, and what a group must satisfy."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stream_anon.auditor.fields import FieldCheck, ShiftCheck, UnknownCheck, field_check, kind_of
from stream_anon.auditor.models import Model, known_models
from stream_anon.auditor.reading.source import read_source, refusal
from stream_anon.auditor.scales import Absent, Scale, UnknownScale, known_scales
from stream_anon.auditor.values import MISSING_VALUES, Comparison, SensitiveColumn

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")


_UNKNOWN = "the auditor does not know this model; install a check of it (entry point stream_anon.auditor_models)"

_UNKNOWN_KIND = (
    "its labels, for the auditor does not know the kind of its hierarchy; "
    "install a scale for it (entry point stream_anon.auditor_scales)"
)


_UNKNOWN_CHANGE = (
    "what is published of it, for the auditor does not know what is done to it; "
    "install a check (entry point stream_anon.auditor_fields)"
)


@dataclass(frozen=True, slots=True)
class Kafka:
    """The broker address and the topics that the policy names."""

    bootstrap: str
    input: str
    output: str
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    registry: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Rules:
    """The parts of a policy that the auditor needs.

    `plain` are fields of which each record has its own value besides the sensitive ones, `changes` the checks of those,
    and of sensitive ones, that are not published as they came. `lists` are insensitive fields that may hold a list of
    scalars. `hidden` are fields that must never be published: identifiers that are dropped, guarding nodes, psf.
    `growing`: a group may take in rows after it was published. `naming` says how texts that name people are compared.
    """

    name: str
    subject: str | None
    naming: Comparison
    quasi: dict[str, Scale]
    weights: dict[str, float]
    sensitive: dict[str, SensitiveColumn]
    plain: tuple[str, ...]
    changes: dict[str, FieldCheck]
    lists: frozenset[str]
    hidden: tuple[str, ...]
    models: tuple[Model, ...]
    unjudged: tuple[str, ...]
    growing: bool
    max_delay: float | None
    kafka: Kafka | None

    @property
    def published(self) -> tuple[str, ...]:
        """Every field that a record must have, and the only ones it may have besides the envelope."""
        return (*self.quasi, *self.sensitive, *self.plain)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The fields that hold tokens of people."""
        return tuple(name for name in self.plain if name in self.changes and self.changes[name].links)

    @property
    def shifts(self) -> dict[str, ShiftCheck]:
        """The fields that hold shifted dates."""
        return {name: check for name in self.plain if isinstance(check := self.changes.get(name), ShiftCheck)}

    def told(self, name: str) -> bool:
        """Tell whether a raw value determines what is published of it without any secret."""
        return name not in self.changes or self.changes[name].computable

    @property
    def k(self) -> int:
        """The largest number of people that any model requires in a group."""
        return max((model.people for model in self.models), default=1)


def read_rules(path: Path) -> Rules:
    """Read a policy; raise PolicyError for anything the auditor does not understand: it never guesses."""
    data = read_source(path, os.environ)
    try:
        return _rules(data, path.parent)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise refusal(path, "not-understood", "the auditor does not understand this policy") from None


def rules_of(data: dict[str, Any], folder: Path) -> Rules:
    """Read a policy from plain data; the files it names are in the folder."""
    try:
        return _rules(data, folder)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise refusal(folder / "policy", "not-understood", "the auditor does not understand this policy") from None


def _rules(data: dict[str, Any], folder: Path) -> Rules:
    attributes: dict[str, dict[str, Any]] = {str(name): spec for name, spec in data["attributes"].items()}
    absent = [str(word) for word in data.get("missing_values", MISSING_VALUES)]
    roles = {name: spec["role"] for name, spec in attributes.items()}
    if unknown := set(roles.values()) - {"identifier", "quasi_identifier", "sensitive", "insensitive"}:
        raise ValueError(unknown)
    quasi = {name: _scale(attributes[name], folder) for name, role in roles.items() if role == "quasi_identifier"}
    known = {spec["model"]: known_models().get(spec["model"]) for spec in data["privacy"]}
    raised = {spec["attribute"] for spec in data["privacy"] if (kind := known[spec["model"]]) and kind.raises}
    sensitive = {
        name: _sensitive(name, attributes[name], folder, name in raised, _comparison(attributes[name], absent))
        for name, role in roles.items()
        if role == "sensitive"
    }
    requests = [
        spec[key] for name, spec in attributes.items() if name in sensitive for key in _REQUESTS if spec.get(key)
    ]
    shown = [name for name, role in roles.items() if role in _OTHERS and kind_of(attributes[name]) != "drop"]
    if any(roles[name] == "identifier" and kind_of(attributes[name]) == "keep" for name in shown):
        raise ValueError("an identifier is never published as it came")
    changes = {
        name: check
        for name, spec in attributes.items()
        if (check := field_check(spec, _comparison(spec, absent))) is not None
    }
    models, unjudged = [], _unknown_kinds(attributes)
    unjudged += [f"{name}: {_UNKNOWN_CHANGE}" for name, check in changes.items() if isinstance(check, UnknownCheck)]
    for spec in data["privacy"]:
        kind = known[spec["model"]]
        model, left = kind.read(spec, sensitive, folder) if kind else (None, f"{spec['model']}: {_UNKNOWN}")
        models.append(model)
        unjudged += [left] if left else []
    weights = {name: float(attributes[name].get("weight", 1.0)) for name in quasi}
    kafka = data.get("kafka")
    return Rules(
        name=str(data["name"]),
        subject=data.get("subject"),
        naming=_comparison(attributes.get(data.get("subject") or "", {}), absent),
        quasi=quasi,
        weights={name: weight / sum(weights.values()) for name, weight in weights.items()},
        sensitive=sensitive,
        plain=tuple(shown),
        changes=changes,
        lists=frozenset(name for name, role in roles.items() if role == "insensitive" and attributes[name].get("list")),
        hidden=(*(name for name, role in roles.items() if role in _OTHERS and name not in shown), *requests),
        models=tuple(model for model in models if model is not None),
        unjudged=tuple(unjudged),
        growing=bool((data.get("algorithm") or {}).get("reuse", False)),
        max_delay=_delay(data),
        kafka=Kafka(
            kafka["bootstrap"],
            kafka["input"],
            kafka["output"],
            dict(kafka.get("options") or {}),
            dict(kafka.get("registry") or {}),
        )
        if kafka
        else None,
    )


_REQUESTS = ("guarding_node", "psf")
_OTHERS = ("identifier", "insensitive")


def _delay(data: dict[str, Any]) -> float | None:
    given = ((data.get("stream") or {}).get("max_delay") or {"time": "5s"}).get("time")
    if isinstance(given, str):
        match = _DURATION.fullmatch(given.strip())
        if match is None:
            raise ValueError(given)
        return float(match[1]) * _SECONDS[match[2]]
    return None if given is None else float(given)


def _scale(spec: dict[str, Any], folder: Path) -> Scale:
    absent = Absent(spec.get("missing") == "leaf", spec.get("unknown") == "leaf")
    return known_scales().get(spec["hierarchy"]["kind"], UnknownScale).of(spec, absent, folder)


def _sensitive(name: str, spec: dict[str, Any], folder: Path, raised: bool, comparison: Comparison) -> SensitiveColumn:
    scale = _scale(spec, folder) if spec.get("hierarchy") else None
    scale = None if isinstance(scale, UnknownScale) else scale
    kind, absent = str(spec.get("type", "category")), spec.get("missing") == "leaf"
    return SensitiveColumn(name, scale, kind, raised, absent, spec.get("guarding_node"), comparison)


def _unknown_kinds(attributes: dict[str, dict[str, Any]]) -> list[str]:
    """Return what is not judged because of hierarchies that the auditor does not know."""
    used = {name: (spec.get("hierarchy") or {}).get("kind") for name, spec in attributes.items()}
    known = {None, *known_scales()}
    return [f"{name}: {_UNKNOWN_KIND}" for name, kind in used.items() if kind not in known]


def _comparison(spec: dict[str, Any], absent: list[str]) -> Comparison:
    return Comparison(frozenset(spec.get("normalize", ("case", "space", "unicode"))), tuple(absent))
