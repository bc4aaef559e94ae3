"""What a schema tells of a column's role: by its tags, else by plain words in its description.

Tags are compared without case and signs. Known are those of Confluent's catalogue (PII, PRIVATE, SENSITIVE, PUBLIC),
the roles of a policy by their own names, and common ones of health and finance.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, NamedTuple

Told = Literal["person", "quasi_identifier", "sensitive", "public"]


class Hint(NamedTuple):
    """What was told of a column, and by which words."""

    told: Told
    because: str


_TAGS: dict[Told, frozenset[str]] = {
    "person": frozenset(
        [
            "pii",
            "spi",
            "personal",
            "personaldata",
            "personallyidentifiable",
            "identifier",
            "directidentifier",
            "personid",
        ]
    ),
    "sensitive": frozenset(
        [
            "sensitive",
            "phi",
            "private",
            "confidential",
            "restricted",
            "secret",
            "pci",
            "health",
            "specialcategory",
            "hipaa",
            "financial",
        ]
    ),
    "quasi_identifier": frozenset(["quasiidentifier", "quasi", "qid", "qi", "indirectidentifier"]),
    "public": frozenset(["public", "insensitive", "nonpersonal", "nonpii", "open"]),
}
_WORDS: dict[Told, re.Pattern[str]] = {
    "person": re.compile(
        r"\b(pii|personally[- ]identif\w*|personal data|identif(ies|ier of) (a |the |one )?"
        r"(person|patient|customer|user)|e-?mail address|phone number|social security|passport|full name)\b",
        re.IGNORECASE,
    ),
    "sensitive": re.compile(r"\b(sensitive|confidential|special categor\w+|phi|protected health)\b", re.IGNORECASE),
    "quasi_identifier": re.compile(r"\bquasi[- ]?identif\w+", re.IGNORECASE),
}
_NEGATED = re.compile(r"\b(no|not|non|without|never)[- ]+(\w+[- ]+){0,2}$", re.IGNORECASE)


def hint_of(tags: Collection[str], text: str) -> Hint | None:
    """Return what tags and description tell, the most careful reading first; None if nothing.

    >>> hint_of(["PII"], "").because, hint_of([], "Diagnosis, confidential.").told
    ('tagged PII', 'sensitive')
    >>> hint_of([], "Not PII."), hint_of(["team-a"], "")
    (None, None)
    """
    plain = {re.sub(r"[^a-z0-9]", "", tag.lower()): tag for tag in sorted(tags)}
    for told, known in _TAGS.items():
        for word, tag in plain.items():
            if word in known or word.rpartition("confluent")[2] in known:
                return Hint(told, f"tagged {tag}")
    for told, pattern in _WORDS.items():
        found = pattern.search(text)
        if found and not _NEGATED.search(text[: found.start()]):
            return Hint(told, f'"{found[0]}" in its description')
    return None
