"""Choose a role for every column, with the reason.

In doubt a person is asked, and the proposal errs on the side of privacy: the column is generalized or left
out, never published unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from stream_anon.insight.propose.columns import Column
from stream_anon.insight.propose.hints import (
    A_PERSON,
    KNOWN_TO_OTHERS,
    MAY_NAME_A_PERSON,
    NAMES_A_PERSON,
    OFTEN_KNOWN_TO_OTHERS,
    names_people,
    other_dates,
    personal,
    sensitive_words,
)
from stream_anon.insight.propose.shapes import FEW, MANY, Shape, shape_of

MOST_QUASI = 8
"""Quasi-identifiers. With more, almost everyone is far from everyone else and groups lose nearly everything."""

MOST_SENSITIVE = 100
"""Values of a sensitive column: it is published as it is, and a value that few have would name them."""

FREE_TEXT = 30
"""Average letters from which on a text is taken for written by a person."""

Role = Literal["identifier", "quasi_identifier", "sensitive", "left out"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """The proposal for a column, and its reason. `decide` is the question to a person, empty in clear cases."""

    column: Column
    role: Role
    reason: str
    decide: str = ""
    shape: Shape | None = None


def judge(columns: Sequence[Column]) -> list[Proposal]:
    """Return a proposal per column, in their order; at least one quasi-identifier if any column can be one."""
    found = [_judge(column) for column in columns]
    found = _without_repetition(found)
    found = _not_too_many(found)
    if not any(proposal.role == "quasi_identifier" for proposal in found):
        found = _at_least_one(found)
    return found


def subject_of(proposals: Iterable[Proposal]) -> Column | None:
    """Return the identifier that most likely identifies people: it is never missing, and its name says so."""
    able = [p.column for p in proposals if p.role == "identifier" and not p.column.missing and p.column.counts]
    able = [column for column in able if column.words & (A_PERSON | {"id", "uuid", "guid"})]
    return min(able, key=lambda c: (not c.words & A_PERSON, "id" not in c.words), default=None)


def _judge(column: Column) -> Proposal:
    """Judge one column by itself; the first rule that applies decides."""
    texts, words = column.counts, column.words
    if not column.name:
        return Proposal(
            column, "left out", "a column without a name, as row numbers have it", "name it if it is needed"
        )
    if not declarable(column.name):
        return Proposal(column, "left out", "a policy cannot name this column", "rename it in the data if it is needed")
    if column.nested:
        return Proposal(column, "left out", "lists cannot be generalized", "split it into fields if it is needed")
    if len(texts) <= 1:
        reason = "always the same value" if texts else "always empty"
        return Proposal(
            column, "left out", reason, "it says nothing here; make it insensitive if it is to be published"
        )
    if words & NAMES_A_PERSON:
        return Proposal(column, "identifier", f'its name says so ("{_first(words & NAMES_A_PERSON)}")')
    if kind := personal(texts):
        return Proposal(column, "identifier", f"the values are {kind}")
    if words & MAY_NAME_A_PERSON and (column.share > 0.5 or len(texts) > MANY):
        reason = f'its name ("{_first(words & MAY_NAME_A_PERSON)}") and {column.share:.0%} different values'
        return Proposal(column, "identifier", reason)
    if names_people(words) and len(texts) > FEW:
        return Proposal(column, "identifier", f'its name says so ("{_first(words & A_PERSON)}")')
    if other_dates(texts):
        question = "write the dates as YYYY-MM-DD, then it can be a quasi_identifier of type timestamp"
        return Proposal(column, "left out", "dates in a form that cannot be read with certainty", question)
    shape = shape_of(column)
    if sensitive_words(words):
        return _sensitive(column, shape)
    return _by_values(column, shape)


def _sensitive(column: Column, shape: Shape | None) -> Proposal:
    hint = f'its name ("{sensitive_words(column.words)[0]}") is of what must not become known'
    few = len(column.counts) <= (MOST_SENSITIVE if shape is not None and shape.type == "category" else FEW)
    if shape is not None and few:
        return Proposal(
            column, "sensitive", f"{hint}; {shape.words}", "is it? It is published as it is, see l below", shape
        )
    if shape is not None and not column.unique:
        question = "so many exact values could name people, so they are generalized; or leave it out"
        return Proposal(column, "quasi_identifier", f"{hint}; {shape.words}", question, shape)
    return Proposal(column, "left out", f"{hint}; {column.share:.0%} different values", "who needs it?", shape)


def _by_values(column: Column, shape: Shape | None) -> Proposal:
    numeric = shape is not None and shape.type in ("integer", "number")
    if column.unique and shape is not None and shape.type == "integer":
        question = "a number of the record or of the person? If it is a measurement, take the line below"
        return Proposal(column, "identifier", f"whole numbers, {column.share:.0%} different", question, shape)
    if column.unique and not numeric and (shape is None or shape.type != "timestamp"):
        question = "does it name a person or a record?"
        if column.mostly_numbers:
            question = "most are numbers: write the others so, with a point and nothing else, and it can be generalized"
        return Proposal(column, "identifier", f"{column.share:.0%} different values", question)
    if shape is None:
        length = sum(map(len, column.counts)) / len(column.counts)
        kind = "free text can hold anything" if length > FREE_TEXT else f"{len(column.counts):,} different values"
        return Proposal(column, "left out", kind, "to keep it, group its values in a table: docs/hierarchies.md")
    if known := column.words & KNOWN_TO_OTHERS:
        return Proposal(
            column, "quasi_identifier", f'others know such things ("{_first(known)}"); {shape.words}', "", shape
        )
    question = "could somebody know this of a person? If not, leave it out or make it insensitive"
    if often := column.words & OFTEN_KNOWN_TO_OTHERS:
        reason = f'others may know such things ("{_first(often)}"); {shape.words}'
        return Proposal(column, "quasi_identifier", reason, question, shape)
    return Proposal(column, "quasi_identifier", shape.words, question, shape)


def _without_repetition(proposals: list[Proposal]) -> list[Proposal]:
    """Leave out a column that repeats an earlier one: each is a function of the other."""
    quasi = [i for i, p in enumerate(proposals) if p.role == "quasi_identifier"]
    for i, j in combinations(quasi, 2):
        one, two = proposals[i].column, proposals[j].column
        if proposals[j].role != "quasi_identifier" or len(one.counts) != len(two.counts) or len(one.counts) < 3:
            continue
        if len(set(zip(map(str, one.values), map(str, two.values), strict=True))) == len(one.counts):
            reason = f'says the same as "{one.name}"'
            proposals[j] = replace(
                proposals[j], role="left out", reason=reason, decide="keep the one that is read better"
            )
    return proposals


def _not_too_many(proposals: list[Proposal]) -> list[Proposal]:
    """Keep the quasi-identifiers that matter most, in three ranks by their names, and leave out the others."""
    quasi = [i for i, p in enumerate(proposals) if p.role == "quasi_identifier"]

    def rank(i: int) -> int:
        words = proposals[i].column.words
        return 0 if words & KNOWN_TO_OTHERS else 1 if words & OFTEN_KNOWN_TO_OTHERS or sensitive_words(words) else 2

    by_rank = sorted(quasi, key=rank)
    for i in by_rank[MOST_QUASI:]:
        others = f"{MOST_QUASI} other columns are quasi-identifiers already, and each one more costs all of them"
        reason = f"{others}; {proposals[i].reason}"
        proposals[i] = replace(
            proposals[i], role="left out", reason=reason, decide="who needs it? Then leave another out"
        )
    return proposals


def _at_least_one(proposals: list[Proposal]) -> list[Proposal]:
    """Make the first left-out or sensitive column that can be generalized a quasi-identifier: a policy needs one."""
    for i, p in enumerate(proposals):
        if p.shape is not None and p.role in ("left out", "sensitive") and declarable(p.column.name):
            question = "nothing else could be a quasi_identifier; what do others know of these people?"
            proposals[i] = replace(p, role="quasi_identifier", decide=question)
            break
    return proposals


def declarable(name: str) -> bool:
    """Tell whether a policy can name the column."""
    parts = name.split(".")
    clean = all(part and part == part.strip() for part in parts)
    return clean and name.isprintable() and not set(name) & set('"`\\$') and not name.startswith("_anon")


def _first(words: Iterable[str]) -> str:
    return sorted(words)[0]
