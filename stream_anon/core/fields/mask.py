"""Hide a part of a text: all but its first and last characters, or what a regular expression finds in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from stream_anon.core.fields.patterns import LONGEST, fault_of
from stream_anon.core.fields.settings import Change, ChangeSettings, FieldUse, Materials, Refused
from stream_anon.core.hierarchy.tree import text_of
from stream_anon.errors import Problem


class Mask(ChangeSettings):
    """`first` and `last` characters stay and `fill` stands for all others; or each match of `pattern` becomes `fill`.

    A text that is not longer than what would stay of it is hidden altogether. One in which the pattern finds nothing
    would leave as it came, so its record is rejected unless `unmatched: keep` is said. With a pattern, texts of more
    than 256 characters are rejected.
    """

    roles = ("identifier", "insensitive", "sensitive")

    kind: Literal["mask"]
    first: int = Field(default=0, ge=0, le=64)
    last: int = Field(default=0, ge=0, le=64)
    pattern: str | None = Field(default=None, min_length=1, max_length=200)
    fill: str = Field(default="***", min_length=1, max_length=20)
    unmatched: Literal["reject", "keep"] = "reject"

    def build(self, materials: Materials) -> Change:
        """Return the function from a text to what is shown of it."""
        return self._ends if self.pattern is None else self._matches(re.compile(self.pattern))

    def _ends(self, value: Any, beside: Sequence[Any]) -> str:
        text = text_of(value)
        if len(text) <= self.first + self.last:
            return self.fill
        return text[: self.first] + self.fill + text[len(text) - self.last :]

    def _matches(self, pattern: re.Pattern[str]) -> Change:
        fill, unmatched = self.fill.replace("\\", r"\\"), self.unmatched

        def hide(value: Any, beside: Sequence[Any]) -> Any:
            text = text_of(value)
            if len(text) > LONGEST:
                return Refused.WRONG_TYPE
            shown, count = pattern.subn(fill, text)
            return shown if count or unmatched == "keep" else Refused.WRONG_TYPE

        return hide

    def rules(self, use: FieldUse) -> Iterator[Problem]:
        """Yield two ways at once, and patterns that are none or may take too long."""
        if self.pattern is None:
            if self.unmatched == "keep":
                message = "without a pattern there is nothing to match"
                yield Problem(("unmatched",), "unused-key", message, "remove it, or add a pattern")
            return
        if self.first or self.last:
            message = "either a pattern says what is hidden, or first and last say what stays"
            yield Problem(("pattern",), "either-or", message, "keep one of the two")
        if (fault := fault_of(self.pattern)) is not None:
            yield Problem(("pattern",), "bad-pattern", *fault)
