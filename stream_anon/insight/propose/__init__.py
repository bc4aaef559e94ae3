"""Propose a policy for a table: roles, types and hierarchies with reasons, and questions where a person must decide."""

from stream_anon.insight.propose.columns import Column, columns_of
from stream_anon.insight.propose.judge import Proposal, judge, subject_of
from stream_anon.insight.propose.told import Hint, hint_of
from stream_anon.insight.propose.write import policy_name, policy_text

__all__ = [
    "Column",
    "Hint",
    "Proposal",
    "columns_of",
    "hint_of",
    "judge",
    "policy_name",
    "policy_text",
    "subject_of",
]
