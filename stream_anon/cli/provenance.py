"""Where a report comes from: date, version, policy, and the digests of the files it is about, as parts of a page."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from stream_anon import __version__
from stream_anon.core.schema import Schema
from stream_anon.report.parts import Table

_AT_ONCE = 1 << 20


def provenance(schema: Schema | None, files: Sequence[tuple[str, Path]]) -> list[Table]:
    """Return what a privacy officer files: when, by which program and policy, from and into which files."""
    rows = [("made", datetime.now(UTC).isoformat(timespec="seconds")), ("program", f"stream-anon {__version__}")]
    if schema is not None:
        rows.append(("policy", f"{schema.policy.name}, fingerprint {schema.fingerprint}"))
    for word, path in files:
        if path.is_file():
            rows += [(word, str(path)), (f"{word}, SHA-256", digest(path))]
    found = [Table("Provenance", "What this page was made of, and by what.", ("", ""), tuple(rows))]
    if schema is not None:
        found += [_roles(schema), _models(schema)]
    return found


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(_AT_ONCE):
            found.update(part)
    return found.hexdigest()


def _roles(schema: Schema) -> Table:
    rows = []
    for name, attribute in schema.policy.attributes.items():
        hierarchy = getattr(attribute, "hierarchy", None)
        kind = "" if hierarchy is None else str(getattr(hierarchy, "kind", ""))
        rows.append((name, attribute.role.replace("_", " "), kind))
    return Table(
        "Fields", "The role of each field; what is not listed is dropped.", ("field", "role", "hierarchy"), tuple(rows)
    )


def _models(schema: Schema) -> Table:
    rows = []
    for model in schema.policy.privacy:
        told = model.model_dump(exclude_none=True, exclude_defaults=True)
        plain = {key: value for key, value in told.items() if isinstance(value, str | int | float) and key != "model"}
        rows.append((str(told["model"]), ", ".join(f"{key} {value}" for key, value in plain.items())))
    return Table("Models", "What every group satisfies, all of them.", ("model", "settings"), tuple(rows))
