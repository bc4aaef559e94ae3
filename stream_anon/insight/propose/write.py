"""Write the proposal as a policy file: a reason above every line, and DECIDE where a person has to look."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stream_anon.insight.propose.judge import Proposal, subject_of
from stream_anon.insight.propose.markers import FEWEST, KNOWN, missing_values
from stream_anon.insight.propose.shapes import word

K, L = 5, 3

_HEAD = """\
# Proposed by stream-anon init from {source}: {rows}.
# The lines marked DECIDE are yours: what somebody could know of these people, no program can see. As it is written, the
# policy errs on the side of privacy. A role is one of
#   identifier        names a person; never published
#   quasi_identifier  known to others, so a way to find a person; generalized until its group looks alike
#   sensitive         must not become known of a person; published as it is, in a group where it could be anyone's
#   insensitive       says nothing about a person; published as it is
# and a column that is not listed is dropped.
"""


def policy_text(proposals: Sequence[Proposal], name: str, source: str, rows: str, more: Sequence[str] = ()) -> str:
    """Return the text of the policy file; `more` are lines at its end."""
    return "\n".join([_HEAD.format(source=_comment(source), rows=rows), *_lines(proposals, name), *more]) + "\n"


def policy_name(stem: str) -> str:
    """Return a name for the policy from that of a file.

    >>> policy_name("my table (2).final"), policy_name("...")
    ('my-table-2-.final', 'policy')
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:80] or "policy"


def _lines(proposals: Sequence[Proposal], name: str) -> Iterator[str]:
    yield "version: 1"
    yield f"name: {word(name)}"
    yield from _subject(proposals)
    sensitive = [proposal.column for proposal in proposals if proposal.role == "sensitive"]
    nothing = missing_values(sensitive, subject_of(proposals))
    if nothing:
        yield "# DECIDE: do all of these stand for nothing? In a sensitive column none counts as a value, see l below."
        yield f"missing_values: [{', '.join(map(word, nothing))}]"
    yield "# secret: ${STREAM_ANON_SECRET}   # keeps group ids the same from run to run; run and replay need it"
    yield "attributes:"
    for proposal in proposals:
        yield from _attribute(proposal, nothing)
    yield "privacy:  # all must hold"
    who = "records" if subject_of(proposals) is None else "people"
    yield f"  # DECIDE: how many {who} must look alike. {K} is a common choice; more protects better and loses more."
    yield f"  - {{model: k_anonymity, k: {K}}}"
    for proposal in proposals:
        if proposal.role == "sensitive":
            texts = {text.strip().casefold() for text in proposal.column.counts}
            most = min(L, max(FEWEST, len(texts.difference(KNOWN, nothing))))
            yield f"  # DECIDE: how many values of {proposal.column.name} a group needs so that none is known."
            yield f"  - {{model: l_diversity, attribute: {word(proposal.column.name)}, l: {most}}}"
    yield "# DECIDE: how long a record may wait. Longer loses less: stream-anon compare shows how much."
    yield "stream: {max_delay: {time: 5s, records: 10000}}"


def _subject(proposals: Sequence[Proposal]) -> Iterator[str]:
    subject = subject_of(proposals)
    if subject is None:
        yield "# DECIDE: no column surely identifies people, so k counts records. If one person can have several,"
        yield "# name the identifier of the person here, or the promise does not hold for them:"
        yield "# subject: ..."
        return
    if subject.share == 1:
        yield "# DECIDE: k counts different values of this column. Each record has its own here: if one person can have"
        yield "# several records, and this numbers the records, name the identifier of the person instead."
    else:
        yield "# DECIDE: k counts different values of this column: is it one for each person, and always the same?"
    yield f"subject: {word(subject.name)}"


def _attribute(proposal: Proposal, nothing: Sequence[str]) -> Iterator[str]:
    column, shape = proposal.column, proposal.shape
    shown = _comment(word(column.name))
    yield f"  # {shown}: {_comment(proposal.reason)}"
    if proposal.decide:
        yield f"  # DECIDE: {_comment(proposal.decide)}"
    generalized = proposal.role != "sensitive"  # what a sensitive column has for nothing is told with missing_values
    if generalized and column.odd and shape is not None and shape.type != "category" and not shape.unknown:
        yield f"  # DECIDE: rejected for a word like NA or ? in place of a value: {column.odd:,}; empty such cells"
    slips = column.no_dates if shape is not None and column.dates else 0
    if generalized and slips:
        yield f"  # DECIDE: not written as YYYY-MM-DD: {slips:,}; correct them, or each becomes (unknown)"
    outside = "" if shape is None else shape.unknown
    if generalized and outside:
        yield f"  # DECIDE: {_comment(outside)} in place of a number: each becomes (unknown), a value of its own"
    extra = (", missing: leaf" if column.missing else "") + (", unknown: leaf" if slips or outside else "")
    quasi = (
        "" if shape is None else f"{{role: quasi_identifier, type: {shape.type}, hierarchy: {shape.hierarchy}{extra}}}"
    )
    match proposal.role:
        case "identifier":
            yield f"  {shown}: {{role: identifier}}"
            if quasi:
                yield f"  # {shown}: {quasi}"
        case "quasi_identifier":
            yield f"  {shown}: {quasi}"
        case "sensitive":
            gaps = column.missing or any(text.strip().casefold() in (*KNOWN, *nothing) for text in column.counts)
            yield f"  {shown}: {{role: sensitive{', missing: leaf' if gaps else ''}}}"
            yield f"  # {shown}: {quasi}"
        case "left out":
            if quasi:
                yield f"  # {shown}: {quasi}"


def _comment(text: str) -> str:
    return "".join(c if c.isprintable() else "·" for c in text)
