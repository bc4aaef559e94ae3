"""Warnings about likely mistakes in a valid policy, by itself or against a sample. Counts values, never shows one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from typing import Any

import numpy as np

from stream_anon.core.decode import Decoder
from stream_anon.core.fields import publish_warnings
from stream_anon.core.fields.keep import Keep
from stream_anon.core.hierarchy import Hierarchy, Tree, Trouble
from stream_anon.core.hierarchy.settings import at
from stream_anon.core.privacy import ColumnModelSettings
from stream_anon.core.schema import QuasiColumn, Schema, SensitiveColumn
from stream_anon.core.spelling import near_equal, spelled_twice
from stream_anon.errors import Problem, nearest, warning
from stream_anon.policy import LoadedPolicy, Policy
from stream_anon.policy.attributes import Insensitive
from stream_anon.policy.rules import field_uses

MANY = 8
"""Quasi-identifiers. With more, almost everyone is far from everyone else and groups lose nearly everything."""

NEARLY_UNIQUE, ENOUGH_ROWS = 0.9, 20
"""A column this distinct points at single people, whatever its role says; fewer rows prove nothing."""

STRAYS = 0.05
"""A share of values of another type from which on the type is wrong, though each may be (unknown)."""

SECRET_OPTIONS = ("*password*", "*sasl.jaas*", "*sasl_jaas*", "*ssl.key*", "*ssl_key*", "*secret*", "*token*")
"""Kafka's names for what must not be read by whoever may read the policy."""

NOTHING = frozenset(
    {"-", "--", ".", "none", "unknown", "not known", "not recorded", "unspecified", "other", "undefined"}
    | {"refused", "don't know", "unbekannt", "keine angabe", "k.a.", "inconnu", "desconocido", "sconosciuto"}
    | {"-1", "-8", "-9", "-99", "-999", "999", "9999"}
)
"""Words and codes that often stand for no value at all."""

Row = Mapping[str, Any]
Path = tuple[str | int, ...]


def warnings(loaded: LoadedPolicy, schema: Schema, rows: Iterable[Row] | None = None) -> list[Problem]:
    """Return all warnings; `rows` are the records of a sample, fields by dotted path, absent ones left out."""
    found = [
        *_subject(loaded.policy),
        *_many(loaded.policy),
        *_shapes(loaded.policy),
        *_published(loaded.policy),
        *_secrets(loaded),
        *exposed(loaded.policy),
        *_trees(schema),
        *_models(schema),
    ]
    if rows is not None:
        found += _sample(schema, list(rows))
    return found


def _subject(policy: Policy) -> Iterator[Problem]:
    if policy.subject is not None:
        return
    for index, model in enumerate(policy.privacy):
        if model.people:
            hint = 'name the column that identifies people: "subject: ..."'
            message = "k counts records, not people: one person with k records would be a group alone"
            yield warning(("privacy", index, "k"), "k-counts-records", message, hint)


def exposed(policy: Policy) -> Iterator[Problem]:
    """Warn of settings that let others see more than the output shows: `run` and `doctor` say them too."""
    if getattr(policy.algorithm, "reuse", False):
        message = "with reuse a record may leave alone, in the box of a group that was published before it"
        hint = "reuse: false; whoever sees when somebody's record came in finds it among those that left alone"
        yield warning(("algorithm", "reuse"), "reuse", message, hint)
    kafka = policy.kafka
    if kafka is None:
        return
    options = {key.replace("_", "."): value for key, value in kafka.options.items()}
    encrypted = str(options.get("security.protocol", "PLAINTEXT")).upper().endswith("SSL")
    if not encrypted and not all(map(_on_this_machine, kafka.bootstrap.split(","))):
        message = "the connection to a broker on another machine is not encrypted: the records can be read on the way"
        hint = "options: {security.protocol: SASL_SSL, ...}, see docs/operate.md"
        yield warning(("kafka", "bootstrap"), "plaintext-broker", message, hint)


def _on_this_machine(address: str) -> bool:
    host = address.strip().rpartition("://")[2].rpartition(":")[0].strip("[]").lower()
    return host in ("localhost", "::1") or host.startswith("127.")


def _many(policy: Policy) -> Iterator[Problem]:
    count = len(policy.quasi_identifiers)
    if count > MANY:
        message = f"{count} quasi-identifiers: expect a high loss"
        hint = f"leave out what nobody needs; up to {MANY} work well"
        yield warning(("attributes",), "many-quasi-identifiers", message, hint)


def _shapes(policy: Policy) -> Iterator[Problem]:
    for name, attribute in policy.quasi_identifiers.items():
        yield from at(("attributes", name, "hierarchy"), attribute.hierarchy.quasi_warnings())


def _published(policy: Policy) -> Iterator[Problem]:
    for use, publish in field_uses(policy):
        yield from publish_warnings(use, publish)


def _secrets(loaded: LoadedPolicy) -> Iterator[Problem]:
    places: list[Path] = [("secret",)] if loaded.policy.secret is not None else []
    options = loaded.policy.kafka.options if loaded.policy.kafka else {}
    for key in options:
        if any(fnmatch(key.lower(), pattern) for pattern in SECRET_OPTIONS):
            places.append(("kafka", "options", key))
    for path in places:
        if not loaded.source.from_environment(path):
            hint = "keep it in the environment: ${NAME}"
            yield warning(path, "secret-in-file", "a secret is written in the policy file", hint)


def _trees(schema: Schema) -> Iterator[Problem]:
    for name, tree in _hierarchies(schema).items():
        if isinstance(tree, Tree) and (count := _single_children(tree)):
            nodes = "a node has" if count == 1 else f"{count} nodes have"
            hint = "merge it with its child: such a level costs and hides nothing"
            path = ("attributes", name, "hierarchy")
            yield warning(path, "single-child", f"{nodes} a single child", hint)


def _single_children(tree: Tree) -> int:
    """Count nodes with one child of another name; one of the same name only fills up a line of a CSV file."""
    children = Counter(int(parent) for parent in tree.parent if parent >= 0)
    return sum(
        children[int(parent)] == 1 and tree.labels[node] != tree.labels[int(parent)]
        for node, parent in enumerate(tree.parent)
        if parent >= 0
    )


def _models(schema: Schema) -> Iterator[Problem]:
    columns = {column.name: column for column in schema.sensitive}
    for index, (spec, model) in enumerate(zip(schema.policy.privacy, schema.requirements.models, strict=True)):
        if isinstance(spec, ColumnModelSettings):
            yield from at(("privacy", index), spec.warnings(model, columns[spec.attribute]))


def _hierarchies(schema: Schema) -> dict[str, Hierarchy]:
    return {column.name: column.hierarchy for column in _columns(schema) if column.hierarchy is not None}


def _columns(schema: Schema) -> list[QuasiColumn | SensitiveColumn]:
    return [*schema.quasi, *schema.sensitive]


def _changes(schema: Schema, rows: list[Row]) -> Iterator[Problem]:
    """Yield fields of which some values cannot be changed, and put what is published in the place of the others."""
    changed: dict[str, list[Any]] = {}
    for name, action in schema.actions.items():
        changed[name], refused = action.apply({n: [row.get(n) for row in rows] for n in (name, *action.reads)})
        if refused:
            message = f"{len(refused):,} of {len(rows):,} rows of the sample have a value that cannot be published so"
            hint = "such records are rejected: correct the settings, or say missing: null"
            yield warning(("attributes", name, "publish"), "value-not-changed", message, hint)
    for i, row in enumerate(rows):
        rows[i] = {**row, **{name: values[i] for name, values in changed.items() if name in row}}


def _sample(schema: Schema, rows: list[Row]) -> Iterator[Problem]:
    yield from _changes(schema, rows)
    fields = {name for row in rows for name in row}
    absent = [column.name for column in _columns(schema) if rows and column.name not in fields]
    for name in absent:
        hint = nearest(name, sorted(fields - schema.policy.attributes.keys())) or "does the data spell its name so?"
        yield warning(("attributes", name), "value-missing", "no row of the sample has a value in this field", hint)
    hierarchies = {name: hierarchy for name, hierarchy in _hierarchies(schema).items() if name not in absent}
    types = {column.name: column.type for column in _columns(schema)}
    for name, hierarchy in hierarchies.items():
        decoder = Decoder({name: types[name]})
        read = [decoder.convert({name: row[name]} if name in row else {}) for row in rows]
        values = [decoder.getters[name](row) for row in read if not isinstance(row, tuple)]
        kept = getattr(schema.policy.attributes[name], "unknown", "") == "leaf"
        yield from _column(("attributes", name), hierarchy, values, len(rows), kept)
    for name in [column.name for column in schema.quasi if isinstance(column.hierarchy, Tree)]:
        yield from _as_other_places(("attributes", name), [row[name] for row in rows if name in row])
    for column in schema.sensitive:
        values = [row[column.name] for row in rows if column.name in row]
        texts = {text for value in values if (text := column.spelling(value)) is not None}
        yield from _spellings(("attributes", column.name), texts)
        yield from _reach(schema.policy, column.name, len(texts))
    for name, attribute in schema.policy.attributes.items():
        if isinstance(attribute, Insensitive) and isinstance(attribute.publish, Keep):
            yield from _uniqueness(("attributes", name), [row[name] for row in rows if name in row])


def _column(path: Path, hierarchy: Hierarchy, values: list[Any], count: int, kept: bool) -> Iterator[Problem]:
    """Yield what is wrong with the values of a column; `kept` says that what has no place is a value of its own."""
    _, trouble = hierarchy.encode(values)
    kinds = np.zeros(len(values), dtype=np.int64) if trouble is None else trouble
    unknown, missing = (int((kinds == kind).sum()) for kind in (Trouble.UNKNOWN, Trouble.MISSING))
    strays = count - len(values)
    if strays > (STRAYS * count if kept else 0):
        message = f"{strays:,} of {count:,} rows of the sample have a value of another type"
        yield warning(
            path, "value-of-wrong-type", message, "correct the type, or the data: empty is missing, a word is not"
        )
    if unknown:
        message = f"{unknown:,} of {count:,} rows of the sample have a value without a place in the hierarchy"
        hint = "add what is missing, or set unknown: leaf; otherwise such records are rejected"
        yield warning((*path, "hierarchy"), "value-without-leaf", message, hint)
    if missing:
        message = f"{missing:,} of {count:,} rows of the sample have no value"
        yield warning(path, "value-missing", message, "say missing: leaf; otherwise such records are rejected")


def _as_other_places(path: Path, values: list[Any]) -> Iterator[Problem]:
    """Warn of spellings in a quasi-identifier: each is a place of its own, so that alike rows do not meet."""
    texts = {value for value in values if isinstance(value, str)}
    if count := spelled_twice(texts):
        message = f"{count:,} of its {len(texts):,} values in the sample differ from another only in spelling"
        hint = "spell them alike in the data, or put them below one node of a tree: each is a value of its own"
        yield warning(path, "values-nearly-equal", message, hint)


def _reach(policy: Policy, name: str, count: int) -> Iterator[Problem]:
    """Warn of a diversity that not even all records of the sample together have."""
    for index, model in enumerate(policy.privacy):
        wanted = getattr(model, "l", 0)
        if getattr(model, "attribute", None) == name and count < wanted:
            message = f"a group needs {wanted:g} values of {name}, and all records of the sample have {count:,}"
            hint = "nothing could be published: ask for fewer, or is the sample too small?"
            yield warning(("privacy", index, "l"), "l-above-values", message, hint)


def _spellings(path: Path, texts: set[str]) -> Iterator[Problem]:
    if count := near_equal(texts):
        message = (
            f"{count:,} of its {len(texts):,} values in the sample differ from another only in punctuation or accents"
        )
        yield warning(path, "values-nearly-equal", message, "spell them alike, or l counts one illness twice")
    if count := sum(text.strip().casefold() in NOTHING for text in texts):
        message = f"{count:,} of its values in the sample may stand for nothing, and each counts towards diversity"
        yield warning(
            path,
            "value-like-missing",
            message,
            "list such words under missing_values; missing: leaf keeps their records",
        )


def _uniqueness(path: Path, values: list[Any]) -> Iterator[Problem]:
    if len(values) < ENOUGH_ROWS:
        return
    share = len({repr(value) for value in values}) / len(values)
    if share > NEARLY_UNIQUE:
        message = f"{share:.0%} of its values in the sample are distinct: published as it is, it can name a person"
        yield warning(path, "nearly-unique", message, "make it an identifier or a quasi_identifier, or drop it")
