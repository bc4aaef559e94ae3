"""The auditor's own policy reader: what may be published in which form, and what a group must satisfy."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stream_anon.auditor.models import AlphaK, Guarding, KAnonymity, LCAnonymity, LDiversity, Model, TCloseness
from stream_anon.auditor.reading.source import read_source, refusal
from stream_anon.auditor.scales.base import Absent, IntervalScale, PrefixScale, Scale, SetScale
from stream_anon.auditor.scales.calendars import CalendarScale
from stream_anon.auditor.scales.trees import TreeScale, flat, from_csv, inline
from stream_anon.auditor.values import MISSING_VALUES, Comparison, SensitiveColumn

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")


@dataclass(frozen=True, slots=True)
class Kafka:
    """The broker address and the topics that the policy names."""

    bootstrap: str
    input: str
    output: str
    options: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Rules:
    """The parts of a policy that the auditor needs.

    `lists` are insensitive fields that may hold a list of scalars. `hidden` are fields that must never be published:
    identifiers, guarding nodes, psf. `growing`: a group may take in rows after it was published. `naming` says how
    texts that name people are compared. `types` are the declared types of quasi-identifiers and sensitive attributes.
    """

    name: str
    subject: str | None
    naming: Comparison
    quasi: dict[str, Scale]
    weights: dict[str, float]
    sensitive: dict[str, SensitiveColumn]
    plain: tuple[str, ...]
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
    def k(self) -> int:
        """The largest number of people that any model requires in a group."""
        return max((model.k for model in self.models if isinstance(model, KAnonymity | AlphaK)), default=1)


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
    raised = {spec["attribute"] for spec in data["privacy"] if spec["model"] == "guarding_node"}
    sensitive = {
        name: _sensitive(name, attributes[name], folder, name in raised, _comparison(attributes[name], absent))
        for name, role in roles.items()
        if role == "sensitive"
    }
    requests = [
        spec[key] for name, spec in attributes.items() if name in sensitive for key in _REQUESTS if spec.get(key)
    ]
    models, unjudged = [], []
    for spec in data["privacy"]:
        model, left = _MODELS[spec["model"]](spec, sensitive, folder)
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
        plain=tuple(name for name, role in roles.items() if role == "insensitive"),
        lists=frozenset(name for name, role in roles.items() if role == "insensitive" and attributes[name].get("list")),
        hidden=(*(name for name, role in roles.items() if role == "identifier"), *requests),
        models=tuple(model for model in models if model is not None),
        unjudged=tuple(unjudged),
        growing=bool((data.get("algorithm") or {}).get("reuse", False)),
        max_delay=_delay(data),
        kafka=Kafka(kafka["bootstrap"], kafka["input"], kafka["output"], dict(kafka.get("options") or {}))
        if kafka
        else None,
    )


_REQUESTS = ("guarding_node", "psf")


def _delay(data: dict[str, Any]) -> float | None:
    given = ((data.get("stream") or {}).get("max_delay") or {"time": "5s"}).get("time")
    if isinstance(given, str):
        match = _DURATION.fullmatch(given.strip())
        if match is None:
            raise ValueError(given)
        return float(match[1]) * _SECONDS[match[2]]
    return None if given is None else float(given)


def _scale(spec: dict[str, Any], folder: Path) -> Scale:
    shape = spec["hierarchy"]
    absent = Absent(spec.get("missing") == "leaf", spec.get("unknown") == "leaf")
    match shape["kind"]:
        case "interval":
            bounds = tuple(shape["range"]) if shape.get("range") else None
            whole, grids = spec["type"] == "integer", shape.get("snap")
            grids = () if grids in (None, "none") else grids
            return IntervalScale(bounds, shape.get("scale"), grids, shape.get("step"), whole, absent)
        case "prefix":
            return PrefixScale(shape["length"], shape.get("alphabet") == "alphanumeric", absent)
        case "calendar":
            return CalendarScale(shape["levels"], 1 if shape.get("epoch") == "seconds" else 1000, absent)
        case "set":
            return SetScale(shape["values"], absent)
        case "flat":
            return TreeScale(flat(shape["values"]), absent)
        case "tree":
            [(root, below)] = shape["tree"].items()
            return TreeScale(inline(root, below), absent)
        case "csv":
            return TreeScale(from_csv(folder / shape["path"], shape.get("delimiter", ";")), absent)
    raise ValueError(shape["kind"])


def _sensitive(name: str, spec: dict[str, Any], folder: Path, raised: bool, comparison: Comparison) -> SensitiveColumn:
    scale = _scale(spec, folder) if spec.get("hierarchy") else None
    numeric = spec.get("type") in ("integer", "number")
    return SensitiveColumn(name, scale, numeric, raised, spec.get("guarding_node"), comparison)


def _comparison(spec: dict[str, Any], absent: list[str]) -> Comparison:
    return Comparison(frozenset(spec.get("normalize", ("case", "space", "unicode"))), tuple(absent))


Columns = Mapping[str, SensitiveColumn]
Built = tuple[Model | None, str]
"""A model, and what of it cannot be judged from outside."""


def _k(spec: dict[str, Any], columns: Columns, folder: Path) -> Built:
    return KAnonymity(spec["k"]), ""


def _l(spec: dict[str, Any], columns: Columns, folder: Path) -> Built:
    return LDiversity(spec["attribute"], spec["l"], spec.get("variant", "distinct"), spec.get("c") or 1.0), ""


def _lc(spec: dict[str, Any], columns: Columns, folder: Path) -> Built:
    given = spec.get("values") or {}
    if isinstance(given, str):
        given = {value: {"l": int(float(cells[0]))} for value, cells in _table(folder / given).items()}
    column, least = columns[spec["attribute"]], int(spec.get("l", 2))
    demands = {column.code(value): max(least, int(demand["l"])) for value, demand in given.items()}
    return LCAnonymity(column.name, least, spec["c"], demands), ""


def _alpha(spec: dict[str, Any], columns: Columns, folder: Path) -> Built:
    given, column = spec.get("alpha"), columns[spec["attribute"]]
    if isinstance(given, str):
        given = {value: float(cells[0]) for value, cells in _table(folder / given).items()}
    if given is None:
        why = f"alpha_k on {column.name}: alpha follows from a running estimate; only k was judged"
        return AlphaK(column.name, spec["k"], {}, 1.0), why
    if isinstance(given, Mapping):
        alphas = {column.code(value): float(alpha) for value, alpha in given.items()}
        return AlphaK(column.name, spec["k"], alphas, float(spec.get("default", 1.0))), ""
    return AlphaK(column.name, spec["k"], {}, float(given)), ""


def _t(spec: dict[str, Any], columns: Columns, folder: Path) -> Built:
    given, column = spec.get("reference"), columns[spec["attribute"]]
    if given is None:
        return None, f"t_closeness on {column.name}: its reference is a running estimate"
    if isinstance(given, str):
        given = {value: float(cells[0]) for value, cells in _table(folder / given).items()}
    order = list(given)
    if column.scale is not None:
        order.sort(key=column.scale.place)
    total = sum(given.values())
    reference = {column.code(value): given[value] / total for value in order}
    return TCloseness(column.name, spec["t"], spec.get("distance") == "ordered", reference), ""


def _guarding(spec: dict[str, Any], columns: Columns, folder: Path) -> Built:
    return Guarding(spec["attribute"], spec["p"]), ""


_MODELS: dict[str, Callable[[dict[str, Any], Columns, Path], Built]] = {
    "k_anonymity": _k, "l_diversity": _l, "lc_anonymity": _lc, "alpha_k": _alpha, "t_closeness": _t,
    "guarding_node": _guarding,
}  # fmt: skip


def _table(path: Path) -> dict[str, list[str]]:
    """Read the lines of a table with a header: value, then its cells."""
    try:
        lines = list(csv.reader(path.read_text("utf-8-sig").splitlines(), delimiter=";"))
    except (OSError, UnicodeDecodeError, csv.Error):
        raise refusal(path, "missing-file", "a table of the policy cannot be read") from None
    return {line[0]: line[1:] for line in lines[1:] if line}
