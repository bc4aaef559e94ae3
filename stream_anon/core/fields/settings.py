"""The settings of what is done to a field: what a policy says of it, what must hold, and the function that does it.

A kind is one module of this package with a subclass of `ChangeSettings`. Everything else, the policy's alternatives,
the JSON schema, the rules and warnings, is derived from the registry `PUBLISH_KINDS`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from stream_anon.core.hierarchy.settings import at
from stream_anon.core.keys import Keys
from stream_anon.core.spelling import Spelling
from stream_anon.errors import Problem
from stream_anon.grammar.fields import Settings
from stream_anon.grammar.registry import Registry

Holds = Literal["text", "whole", "real", "scalar"]
"""What a changed field holds in the output: formats with schemas declare it so."""


class Refused(Enum):
    """Why a value could not be changed: its record is rejected, for nothing leaves as it came."""

    MISSING = "missing"
    WRONG_TYPE = "wrong_type"


Change = Callable[[Any, Sequence[Any]], Any]
"""From a value, which is there and is text, a number or a boolean, and the further fields that the kind reads, to what
is published in its place, or to why there is nothing."""


@dataclass(frozen=True, slots=True)
class FieldUse:
    """A field as the rules of a kind see it. `people` is the largest k.

    `roles` are those of all attributes by name, `request` for fields in which a person asks for protection.
    """

    name: str
    role: str
    type: str | None
    subject: str | None
    secret: bool
    people: int
    roles: Mapping[str, str]

    @property
    def is_subject(self) -> bool:
        """Whether the field is what tells people apart."""
        return self.name == self.subject


@dataclass(frozen=True, slots=True)
class Materials:
    """What the function of a kind is made of: names of policy and field, keys, how texts and people are compared.

    `identifiers` are the names of all attributes that name a person.
    """

    policy: str
    name: str
    keys: Keys = field(repr=False)
    spelling: Spelling
    naming: Spelling
    subject: str | None
    identifiers: tuple[str, ...]

    def purpose(self, said: str | None) -> tuple[str, ...]:
        """Return what keeps hashes of two purposes apart; what no policy says is that of this field of this one."""
        return ("field", self.policy, self.name) if said is None else ("purpose", said)


class PublishSettings(Settings):
    """The settings of one kind. A subclass narrows `kind` to the literal by which a policy chooses it.

    `roles` are those of attributes it may stand at. `shown`: the field is part of the output at all.
    """

    kind: str
    roles: ClassVar[tuple[str, ...]] = ("identifier", "insensitive")
    shown: ClassVar[bool] = True

    def rules(self, use: FieldUse) -> Iterator[Problem]:
        """Yield what is contradictory in the settings; paths are relative to the entry `publish`."""
        yield from ()

    def warnings(self, use: FieldUse) -> Iterator[Problem]:
        """Yield likely mistakes in valid settings."""
        yield from ()


class ChangeSettings(PublishSettings):
    """The settings of a kind that puts something else in the place of each value.

    `missing` says what becomes of a record without the value: `reject` sends it to the dead letters, `null` publishes
    nothing in its place. `keyed`: the change needs the policy's secret.
    """

    keyed: ClassVar[bool] = False
    missing: Literal["reject", "null"] = "reject"

    @property
    def holds(self) -> Holds:
        """What the changed field holds."""
        return "text"

    def reads(self, materials: Materials) -> dict[str, str]:
        """Return the further fields of a record that the change depends on, with the types they are read as."""
        return {}

    @abstractmethod
    def build(self, materials: Materials) -> Change:
        """Return the function that changes one value; the same value of the same record always becomes the same."""


PUBLISH_KINDS: Registry[PublishSettings] = Registry(
    PublishSettings,
    key="kind",
    group="stream_anon.publish_kinds",
)
"""Every kind by its word in the policy; other distributions add theirs by entry points of that group."""


class _BareWord:
    """Lets a policy write a kind without settings as one word: `publish: drop`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(_as_mapping, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"enum": bare_words()}, handler(schema)]}


def _as_mapping(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


def bare_words() -> list[str]:
    """Return the kinds that need no settings: one word says them."""
    kinds = {word: PUBLISH_KINDS[word].model_fields.values() for word in PUBLISH_KINDS.words}
    return [word for word, fields in kinds.items() if sum(known.is_required() for known in fields) == 1]


AnyPublish = Annotated[PublishSettings, PUBLISH_KINDS, _BareWord()]
"""The settings of any kind that is known, or the bare word of one."""


def publish_problems(use: FieldUse, publish: PublishSettings, lists: bool) -> Iterator[Problem]:
    """Yield every rule that what is done to a field breaks, as that of its attribute."""
    path = ("attributes", use.name, "publish")
    if use.role not in publish.roles:
        fitting = ", ".join(word for word in PUBLISH_KINDS.words if use.role in PUBLISH_KINDS[word].roles)
        message = f"{publish.kind} is not for attributes of the role {use.role}"
        yield Problem(path, "publish-and-role", message, f"for {use.role}: {fitting}")
        return
    if isinstance(publish, ChangeSettings):
        if publish.keyed and not use.secret:
            message = f"{publish.kind} is keyed by the policy's secret, and there is none"
            yield Problem(path, "needs-secret", message, "add secret: ${STREAM_ANON_SECRET}")
        if lists:
            message = "a field that may hold a list cannot be changed"
            yield Problem(path, "publish-and-list", message, "remove list: true, or publish: keep")
        if publish.holds == "text" and use.type not in (None, "category"):
            message = f"{publish.kind} makes text, and the type of this attribute is {use.type}"
            yield Problem(path, "publish-and-type", message, "say type: category")
    yield from at(path, publish.rules(use))


def publish_warnings(use: FieldUse, publish: PublishSettings) -> Iterator[Problem]:
    """Yield likely mistakes in what is done to a field."""
    yield from at(("attributes", use.name, "publish"), publish.warnings(use))
