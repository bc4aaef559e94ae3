"""Hints from the name of a column, or the look of its values; knows words, decides nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


NAMES_A_PERSON = _set(
    "ssn nin passport iban email mail phone telephone tel mobile fax surname firstname lastname forename "
    "username login nickname uuid guid imei imsi mac ip cookie fingerprint signature photo url website "
    "nachname vorname telefon handy ausweis prénom prenom téléphone courriel apellido apellidos teléfono telefono "
    "cognome cellulare achternaam voornaam telefoon sobrenome"
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
    "marital education degree school latitude lat longitude lon lng location neighborhood neighbourhood "
    "alter geburt geburtsdatum geburtsjahr geschlecht ort wohnort stadt plz bundesland familienstand "
    "staatsangehörigkeit "
    "âge naissance sexe ville commune département nationalité edad nacimiento sexo ciudad municipio provincia "
    "età eta nascita sesso città citta comune leeftijd geboren geboortedatum geslacht woonplaats idade cidade "
    "nascimento"
)
OFTEN_KNOWN_TO_OTHERS = _set(
    "occupation job work workclass employer profession position title department relationship household "
    "family children admission admitted visit visited date arrival arrived height weight hours class "
    "grade language beruf größe groesse gewicht kinder beroep métier ocupación profesión professione profissão"
)

SENSITIVE = _set(
    # health (GDPR Art. 9): English, German, French, Spanish, Italian, Dutch, Portuguese
    "diagnosis diagnoses disease diseases illness condition symptom symptoms medication drug drugs treatment therapy "
    "health hlth hiv aids cancer icd disability disabled pregnant pregnancy mortality death died survived outcome "
    "depression addiction alcohol smoker smoking allergy surgery hospital prescription blood bmi vaccine vaccinated "
    "diagnose krankheit befund gesundheit behinderung schwanger medikament maladie santé sante traitement handicap "
    "enfermedad salud diagnóstico diagnostico tratamiento discapacidad malattia salute diagnosi disabilità disabilita "
    "ziekte gezondheid doença doenca saúde saude "
    # politics, religion, unions
    "religion religious faith church creed confession konfession glaube kirche foi religión religione religie religião "
    "politics political party vote voted voting ballot candidate ideology partei wahl politik parti politique voto "
    "partido política politica partito partij union unions gewerkschaft syndicat sindicato sindacato vakbond "
    # sex life, orientation, biometrics, genetics
    "orientation sexual sexuality affair affairs partner partners lgbt sexualität sexualitaet biometric biometrics "
    "fingerprints iris genetic genetics dna genome genotype biometrie gentest "
    # crime (Art. 10)
    "crime criminal offence offense conviction convicted arrest arrested sentence prison probation recidivism "
    "vorstrafe straftat condamnation délit delit delito reato "
    # money, and what is said of people
    "salary income wage wages earnings debt balance credit loan wealth tax taxes benefit benefits welfare gehalt "
    "einkommen lohn schulden salaire revenu dette salario ingresos ingreso renta deuda reddito stipendio inkomen "
    "complaint violation test score"
)
"""What must not become known of a person, in several languages: the special categories of GDPR Art. 9 and 10, money."""

_STEMS = ("hlth", "health", "diag", "disea", "relig", "polit", "sexual", "crimin", "salar", "incom", "gesund", "krank")

NOMINAL = _set(
    "occupation job profession industry sector employer workclass religion race ethnicity ethnic nationality country "
    "region state province district city county marital relationship party vote department ward clinic hospital "
    "school language type kind category class code group status reason cause method brand model make color colour "
    "beruf branche religion familienstand region land profession métier metier ocupación ocupacion profesión estado"
)
"""Columns whose numbers are codes of kinds: the code between two others is not between them in any sense."""

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
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_OTHER_DATE = re.compile(r"\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|\d{4}[/.]\d{1,2}[/.]\d{1,2}(\s.*)?")
_UPPER, _LOWER = "A-ZÀ-ÖØ-Þ", r"[^\W\d_A-ZÀ-ÖØ-Þ]"
_WORD = re.compile(rf"[{_UPPER}]+(?=[{_UPPER}]{_LOWER})|[{_UPPER}]?{_LOWER}+|[{_UPPER}]+|\d+")

MISSING_WORDS = frozenset({"?", "na", "n/a", "nan", "null", "none", "-", ".", "missing"})
"""How files without a notion of nothing write it."""


def words_of(name: str) -> frozenset[str]:
    """Return the words a name is made of, and the name without its signs.

    >>> sorted(words_of("patient_ID")), sorted(words_of("birthYear"))
    (['id', 'patient', 'patientid'], ['birth', 'birthyear', 'year'])
    >>> sorted(words_of("État_Santé"))
    ['santé', 'état', 'étatsanté']
    """
    words = [word.lower() for word in _WORD.findall(name)]
    return frozenset([*words, "".join(words)])


def sensitive_words(words: frozenset[str]) -> list[str]:
    """Return the words, whole or abbreviated, that stand for what must not become known.

    >>> sensitive_words(words_of("hlthg")), sensitive_words(words_of("HIV status")), sensitive_words(words_of("height"))
    (['hlthg'], ['hiv'], [])
    """
    return sorted(word for word in words if word in SENSITIVE or word.startswith(_STEMS))


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
    """Tell whether nearly all texts are dates, many of them in a form other than ISO 8601, which is ambiguous.

    >>> other_dates(["1.2.1980", "1980-02-01"]), other_dates(["1980-02-01", "1981-02-01"]), other_dates(["1.5", "2"])
    (True, False, False)
    """
    found = list(texts)
    other = sum(_OTHER_DATE.fullmatch(text) is not None for text in found)
    written = sum(_ISO_DATE.fullmatch(text) is not None for text in found)
    return other > 0.05 * len(found) and other + written >= 0.9 * len(found)
