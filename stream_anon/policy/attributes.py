"""What each field of a record is to the person it is about: its role, its type, and how it may be generalized."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from stream_anon.core.fields import PUBLISH_KINDS, AnyPublish
from stream_anon.core.fields.drop import Drop
from stream_anon.core.fields.keep import Keep
from stream_anon.core.hierarchy import HIERARCHIES, AnyHierarchy
from stream_anon.grammar.fields import Number, Settings

Type = Literal["category", "integer", "number", "timestamp"]
Absent = Literal["reject", "leaf"]


Differences = list[Literal["case", "space", "unicode"]]
EVERY_DIFFERENCE: Differences = ["case", "space", "unicode"]


class _Published(Settings):
    """An attribute of which the policy may say how it is published."""

    usual: ClassVar[str]

    @model_serializer(mode="wrap")
    def _brief(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is usual: the fingerprint of a policy that does not use the word must not depend on it."""
        found: dict[str, Any] = dump(self)
        if found.get("publish", {}).get("kind") == self.usual:
            del found["publish"]
        return found


class Identifier(_Published):
    """Names a person. Not published unless `publish` says what stands in its place; never as it is.

    If it is the `subject` it is kept as a hash, with a new key in each process. `normalize` says which differences
    between two texts do not make two people: `case`, surrounding `space`, forms of `unicode` (compatible and invisible
    characters). All three by default.
    """

    usual = "drop"

    role: Literal["identifier"]
    normalize: Differences = EVERY_DIFFERENCE
    publish: AnyPublish = Drop(kind="drop")


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


class Sensitive(_Published):
    """What must not become known of a person: published as it is, in a group where it could be anyone's.

    With `publish` it is rounded, masked or redacted first, and the models judge what is published.

    `guarding_node` and `psf` name the fields of the record in which the person says what to protect; such fields are
    read, obeyed and never published. `normalize` says which differences between two texts do not make two values:
    `case`, surrounding `space`, forms of `unicode`. A missing value (`missing: leaf`) never counts towards diversity.
    """

    usual = "keep"

    role: Literal["sensitive"]
    type: Type = "category"
    hierarchy: AnyHierarchy | None = None
    guarding_node: str | None = None
    psf: str | None = None
    normalize: Differences = EVERY_DIFFERENCE
    missing: Absent = "reject"
    unknown: Absent = "reject"
    publish: AnyPublish = Keep(kind="keep")


class Insensitive(_Published):
    """Tells nothing of a person: published as it is, or changed as `publish` says.

    Its value is text, a number or a boolean; with `list`, a list of these too. A record with anything else in the field
    is rejected: an object could carry what nobody declared.
    """

    usual = "keep"

    role: Literal["insensitive"]
    list: bool = False
    publish: AnyPublish = Keep(kind="keep")


Attribute = Annotated[Identifier | QuasiIdentifier | Sensitive | Insensitive, Field(discriminator="role")]

PUBLISH_KINDS.on_change(lambda: [kind.model_rebuild(force=True) for kind in (Identifier, Sensitive, Insensitive)])
HIERARCHIES.on_change(lambda: [kind.model_rebuild(force=True) for kind in (QuasiIdentifier, Sensitive)])
