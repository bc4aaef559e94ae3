"""Hints from the name of a column, or the look of its values; knows words, decides nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


NAMES_A_PERSON = _set(
    "ssn nin passport iban email mail phone telephone tel mobile fax surname firstname lastname forename "
    "username login nickname uuid guid imei imsi mac ip cookie fingerprint signature photo url website"
)
MAY_NAME_A_PERSON = _set("id name key no number nr num account card license licence user address street")
"""Names a person only if most values differ: a `country_name` does not."""

A_PERSON = _set(
    "person patient customer client user member subject employee student citizen passenger participant "
    "individual resident ssn email"
)

A_KEY = _set("id ids key no number nr num code ref")

KNOWN_TO_OTHERS = _set(
    "age birth born dob birthday birthdate birthyear sex gender zip zipcode postcode postal plz city town "
    "village county region state province district country nationality citizenship race ethnicity ethnic "
    "marital education degree school latitude lat longitude lon lng location neighborhood neighbourhood"
)
OFTEN_KNOWN_TO_OTHERS = _set(
    "occupation job work workclass employer profession position title department relationship household "
    "family children admission admitted visit visited date arrival arrived height weight hours class "
    "grade language"
)

SENSITIVE = _set(
    "diagnosis diagnoses disease illness condition symptom symptoms medication drug drugs treatment "
    "therapy hiv cancer icd religion religious politics political party orientation sexual crime criminal "
    "offence offense salary income wage wages earnings debt balance credit loan disability pregnant "
    "pregnancy mortality death died survived outcome complaint violation test score"
)

CODES = _set("zip zipcode postcode postal plz")
DATES = _set("date day time timestamp ts created updated at when dob birthdate birthday born")

_PERSONAL = {
    "e-mail addresses": re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+"),
    "UUIDs": re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    "network addresses": re.compile(r"\d{1,3}(\.\d{1,3}){3}"),
    "web addresses": re.compile(r"https?://\S+"),
    "phone numbers": re.compile(r"\+\d[\d ()/-]{6,}|\(?\d{3}\)?[ -]\d{3}[ -]\d{4}"),
    "social security numbers": re.compile(r"\d{3}-\d{2}-\d{4}"),
}
_OTHER_DATE = re.compile(r"\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|\d{4}[/.]\d{1,2}[/.]\d{1,2}(\s.*)?")
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")

MISSING_WORDS = frozenset({"?", "na", "n/a", "nan", "null", "none", "-", ".", "missing"})
"""How files without a notion of nothing write it."""


def words_of(name: str) -> frozenset[str]:
    """Return the words a name is made of, and the name without its signs.

    >>> sorted(words_of("patient_ID")), sorted(words_of("birthYear"))
    (['id', 'patient', 'patientid'], ['birth', 'birthyear', 'year'])
    """
    words = [word.lower() for word in _WORD.findall(name)]
    return frozenset([*words, "".join(words)])


def names_people(words: frozenset[str]) -> bool:
    """Tell whether a name, by its words, is that of a person's key and of nothing else about the person.

    >>> names_people(words_of("Patient ID")), names_people(words_of("patient")), names_people(words_of("patient_age"))
    (True, True, False)
    """
    whole = max(words, key=len, default="")  # the name without its signs
    return bool(words & A_PERSON) and words - {whole} <= A_PERSON | A_KEY


def personal(texts: Iterable[str]) -> str:
    """Return the kind of personal address that nearly all texts are; empty if none.

    >>> personal(["a@b.org", "c@d.net"]), personal(["a", "b"])
    ('e-mail addresses', '')
    """
    found = list(texts)
    for kind, pattern in _PERSONAL.items():
        if found and sum(pattern.fullmatch(text.strip()) is not None for text in found) >= 0.9 * len(found):
            return kind
    return ""


def other_dates(texts: Iterable[str]) -> bool:
    """Tell whether nearly all texts are dates in a form other than ISO 8601, which is ambiguous."""
    found = list(texts)
    return bool(found) and sum(_OTHER_DATE.fullmatch(text) is not None for text in found) >= 0.9 * len(found)
