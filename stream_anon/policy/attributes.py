"""What each field of a record is to the person it is about: its role, its type, and how it may be generalized."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stream_anon.core.hierarchy import HIERARCHIES, AnyHierarchy
from stream_anon.grammar.fields import Number, Settings

Type = Literal["category", "integer", "number", "timestamp"]
Absent = Literal["reject", "leaf"]


Differences = list[Literal["case", "space", "unicode"]]
EVERY_DIFFERENCE: Differences = ["case", "space", "unicode"]


class Identifier(Settings):
    """Names a person. Never published; kept only as a hash, with a new key in each process, if it is the `subject`.

    `normalize` says which differences between two texts do not make two people: `case`, surrounding `space`, forms of
    `unicode` (compatible and invisible characters). All three by default.
    """

    role: Literal["identifier"]
    normalize: Differences = EVERY_DIFFERENCE


class QuasiIdentifier(Settings):
    """Known to others and so a way to find a person: published only as general as its whole group.

    `missing` and `unknown` say what a record without the value, or with one outside the hierarchy, gets: `reject` sends
    it to the dead letters, `leaf` treats "missing" (or "unknown") as a value of its own.
    """

    role: Literal["quasi_identifier"]
    type: Type
    hierarchy: AnyHierarchy
    weight: Annotated[Number, Field(ge=1e-6, le=1e6)] = 1.0
    missing: Absent = "reject"
    unknown: Absent = "reject"


class Sensitive(Settings):
    """What must not become known of a person: published as it is, in a group where it could be anyone's.

    `guarding_node` and `psf` name the fields of the record in which the person says what to protect; such fields are
    read, obeyed and never published. `normalize` says which differences between two texts do not make two values:
    `case`, surrounding `space`, forms of `unicode`. A missing value (`missing: leaf`) never counts towards diversity.
    """

    role: Literal["sensitive"]
    type: Type = "category"
    hierarchy: AnyHierarchy | None = None
    guarding_node: str | None = None
    psf: str | None = None
    normalize: Differences = EVERY_DIFFERENCE
    missing: Absent = "reject"
    unknown: Absent = "reject"


class Insensitive(Settings):
    """Tells nothing of a person: published as it is.

    Its value is text, a number or a boolean; with `list`, a list of these too. A record with anything else in the field
    is rejected: an object could carry what nobody declared.
    """

    role: Literal["insensitive"]
    list: bool = False


Attribute = Annotated[Identifier | QuasiIdentifier | Sensitive | Insensitive, Field(discriminator="role")]

HIERARCHIES.on_change(lambda: [kind.model_rebuild(force=True) for kind in (QuasiIdentifier, Sensitive)])
