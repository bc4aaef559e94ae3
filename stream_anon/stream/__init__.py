"""Stream algorithms, one per file, and the engine that runs any of them. `build` makes the one a policy asks for."""

from __future__ import annotations

from stream_anon.core.hierarchy import ValueSet
from stream_anon.core.schema import Schema
from stream_anon.errors import Unsupported
from stream_anon.policy.settings import CailSettings, CastleSettings, FadsSettings
from stream_anon.stream.algorithm import Algorithm
from stream_anon.stream.buffer import Buffer
from stream_anon.stream.cail import Cail
from stream_anon.stream.castle import Castle
from stream_anon.stream.engine import Engine
from stream_anon.stream.fads import Fads
from stream_anon.stream.group_finder import GroupFinder, kernels_of
from stream_anon.stream.outcome import Outcome, StreamEngine
from stream_anon.stream.reusable_groups import ReusableGroups
from stream_anon.stream.standing import StandingClusters

REMEMBERED = 100
"""Groups that may take in a row later on, where an algorithm reuses them: as many as CASTLE averages over."""

__all__ = ["Algorithm", "Engine", "Outcome", "StreamEngine", "build"]


def build(schema: Schema, compiled: bool | None = None) -> Engine:
    """Build the engine for a policy; `compiled=False` uses the numpy kernels even if numba is installed."""
    for column in schema.quasi:
        if isinstance(column.hierarchy, ValueSet):
            raise Unsupported(
                f'{column.name}: a hierarchy of kind "set" has no order to search in a stream; '
                'use "flat" or a tree, or the batch algorithm l-clustering'
            )
    buffer = Buffer(schema.policy.stream.max_buffer)
    finder = GroupFinder(schema, buffer, kernels_of(schema, compiled))
    reuse = getattr(schema.policy.algorithm, "reuse", False)
    reusable = ReusableGroups(REMEMBERED) if reuse else None
    algorithm = schema.policy.algorithm.build(schema, buffer) or _algorithm(schema, finder, reusable)
    return Engine(schema, buffer, algorithm, reusable)


def _algorithm(schema: Schema, finder: GroupFinder, reusable: ReusableGroups | None) -> Algorithm:
    match schema.policy.algorithm:
        case CastleSettings() as settings:
            return Castle(finder, settings, reusable)
        case FadsSettings():
            return Fads(finder, reusable)
        case CailSettings(clusters="standing") as settings:
            return StandingClusters(finder, settings)
        case CailSettings() as settings:
            return Cail(finder, settings)
        case other:
            raise Unsupported(f'the stream algorithm "{other.name}" has settings and does not build itself')
