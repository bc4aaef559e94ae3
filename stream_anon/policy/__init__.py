"""The policy file: its models, how it is read, and what must hold between its parts; knows nothing of records."""

from stream_anon.policy.load import LoadedPolicy, load, load_policy
from stream_anon.policy.policy import Policy
from stream_anon.policy.reading.source import Source
from stream_anon.policy.rules import problems

__all__ = ["LoadedPolicy", "Policy", "Source", "load", "load_policy", "problems"]
