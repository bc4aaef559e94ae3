"""A keyed hash cut so short that many people share it: enough to sample or to spread by, not enough to follow one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from stream_anon.core.fields.settings import Change, ChangeSettings, FieldUse, Materials
from stream_anon.core.keys import keyed_bytes
from stream_anon.errors import Problem, warning


class HashPrefix(ChangeSettings):
    """The first `length` hexadecimal digits of a keyed hash. `people` is how many different people are expected.

    Fields of one `purpose` have equal prefixes for equal values; without one, the purpose is this field of this policy.
    """

    keyed = True

    kind: Literal["hash_prefix"]
    length: int = Field(ge=1, le=16)
    people: int = Field(ge=1)
    purpose: str | None = Field(default=None, min_length=1, max_length=200)

    def build(self, materials: Materials) -> Change:
        """Return the function from a name to its prefix."""
        key, spelling, length = materials.keys.field, materials.spelling, self.length
        purpose = materials.purpose(self.purpose)

        def prefix(value: Any, beside: Sequence[Any]) -> str:
            return keyed_bytes(key, "hash_prefix", *purpose, spelling(value) or "").hex()[:length]

        return prefix

    def warnings(self, use: FieldUse) -> Iterator[Problem]:
        """Yield a prefix that fewer people share than a group has."""
        sharing, wanted = self.people / 16**self.length, max(use.people, 2)
        if sharing < wanted:
            longest = 0
            while self.people / 16 ** (longest + 1) >= wanted:
                longest += 1
            message = (
                f"about {sharing:.2g} of {self.people:,} people share a prefix of this length; a group has {wanted}"
            )
            hint = f"length: {longest}" if longest else "publish: drop; there are too few people for any length"
            yield warning(("length",), "prefix-too-long", message, hint)
