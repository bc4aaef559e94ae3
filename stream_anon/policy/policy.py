"""The policy: one file that says what each field is, what a group must satisfy, and how long a record may wait."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, PrivateAttr, SecretStr

from stream_anon.core.fields import PUBLISH_KINDS, PublishSettings
from stream_anon.core.hierarchy import HIERARCHIES
from stream_anon.core.privacy import MODELS, PrivacySettings
from stream_anon.grammar.fields import Part, Settings
from stream_anon.policy.attributes import Attribute, Identifier, Insensitive, QuasiIdentifier, Sensitive
from stream_anon.policy.settings import (
    STREAM_ALGORITHMS,
    AlgorithmSettings,
    CailSettings,
    KafkaSettings,
    StreamSettings,
)


class Policy(Settings):
    """The whole policy. What holds between its parts is in `rules`; a policy is usable only after both agree.

    `subject` names the identifier that tells people apart: with it k counts people, without it records. `secret` keys
    the ids of groups and the order of their rows; it belongs into the environment: `secret: ${STREAM_ANON_SECRET}`.
    `missing_values` are words that stand for nothing in a sensitive attribute or in the subject, beside null and "".
    `max_rejected` and `max_suppressed` are shares of the records beyond which a run ends with exit code 5.
    """

    version: Literal[1]
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80)
    subject: str | None = None
    secret: SecretStr | None = None
    missing_values: list[str] = Field(default=["n/a", "na", "nan", "null", "missing", "?"])
    max_rejected: Part | None = None
    max_suppressed: Part | None = None
    attributes: dict[str, Attribute] = Field(min_length=1)
    privacy: list[PrivacySettings] = Field(min_length=1)
    stream: StreamSettings = StreamSettings()
    algorithm: AlgorithmSettings = CailSettings(name="cail")
    kafka: KafkaSettings | None = None

    _folder: Path = PrivateAttr(default_factory=Path)

    @property
    def folder(self) -> Path:
        """The folder to which the paths in the policy are relative: that of its file, else the current one."""
        return self._folder

    @property
    def quasi_identifiers(self) -> dict[str, QuasiIdentifier]:
        """The quasi-identifiers by name, in the order of the file."""
        return {name: a for name, a in self.attributes.items() if isinstance(a, QuasiIdentifier)}

    @property
    def sensitive(self) -> dict[str, Sensitive]:
        """The sensitive attributes by name, in the order of the file."""
        return {name: a for name, a in self.attributes.items() if isinstance(a, Sensitive)}

    @property
    def published(self) -> tuple[str, ...]:
        """The attributes of which each record has a value of its own in the output: sensitive ones, then all others."""
        others = (name for name, a in self.attributes.items() if isinstance(a, Identifier | Insensitive))
        return (*self.sensitive, *(name for name in others if self.publish(name).shown))

    def publish(self, name: str) -> PublishSettings:
        """Return what is done to an attribute that is not a quasi-identifier."""
        attribute = self.attributes[name]
        assert not isinstance(attribute, QuasiIdentifier)  # noqa: S101 - generalized, which is another thing
        return attribute.publish


for registry in (HIERARCHIES, PUBLISH_KINDS, MODELS, STREAM_ALGORITHMS):
    registry.on_change(lambda: Policy.model_rebuild(force=True))
