"""The contract's runs, for the algorithms and settings of the tests."""

from __future__ import annotations

from cases import schema_of

from stream_anon.policy.settings import StreamSettings
from stream_anon.stream import build
from stream_anon.testing.contract import run
from stream_anon.testing.contract.definitions import Row
from stream_anon.testing.contract.run import deliver

__all__ = ["Run", "deliver"]


class Run(run.Run):
    """A run of an algorithm by its name."""

    @classmethod
    def of(
        cls,
        policy: str,
        algorithm: str,
        stream: StreamSettings,
        settings: Row | None = None,
    ) -> Run:
        """A new engine that has seen nothing."""
        schema = schema_of(policy, algorithm, stream, settings)
        return cls(policy, build(schema), schema)
