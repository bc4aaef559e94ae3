"""Stream algorithms, one per file, and the engine that runs any of them. `build` makes the one a policy asks for."""

from __future__ import annotations

from stream_anon.core.hierarchy import ValueSet
from stream_anon.core.judging.veto import Veto
from stream_anon.core.schema import Schema
from stream_anon.errors import Unsupported
from stream_anon.policy.settings import CailSettings, CastleSettings, FadsSettings
from stream_anon.stream.algorithm import Algorithm
from stream_anon.stream.buffer import Buffer
from stream_anon.stream.cail import Cail
from stream_anon.stream.castle import Castle
from stream_anon.stream.engine import Engine
from stream_anon.stream.fads import Fads
from stream_anon.stream.group_finder import GroupFinder
from stream_anon.stream.outcome import Outcome, StreamEngine
from stream_anon.stream.reusable_groups import ReusableGroups
from stream_anon.stream.standing import StandingClusters

REMEMBERED = 100
"""Groups that may take in a row later on, where an algorithm reuses them: as many as CASTLE averages over."""

SMALL = 4
"""A window that holds fewer than so many times k rows has clusters that stand, as the source describes."""

__all__ = ["Algorithm", "Engine", "Outcome", "StreamEngine", "build"]


def build(schema: Schema) -> Engine:
    """Build the engine for a policy."""
    for column in schema.quasi:
        if isinstance(column.hierarchy, ValueSet):
            raise Unsupported(
                f'{column.name}: a hierarchy of kind "set" has no order to search in a stream; '
                'use "flat" or a tree, or the batch algorithm l-clustering'
            )
    buffer = Buffer(schema.policy.stream.max_buffer)
    reuse = getattr(schema.policy.algorithm, "reuse", False)
    reusable = ReusableGroups(REMEMBERED) if reuse else None
    return Engine(schema, buffer, _algorithm(schema, buffer, reusable), reusable)


def _algorithm(schema: Schema, buffer: Buffer, reusable: ReusableGroups | None) -> Algorithm:
    settings, records = schema.policy.algorithm, schema.policy.stream.max_delay.records
    if isinstance(settings, CailSettings):
        small = records is not None and records < SMALL * schema.requirements.k
        if settings.clusters == "transient" or (settings.clusters == "auto" and not small):
            return Cail(schema, buffer, settings)
        return StandingClusters(GroupFinder(schema, buffer, Veto(schema)), settings)
    finder = GroupFinder(schema, buffer, Veto(schema))
    if isinstance(settings, CastleSettings):
        return Castle(finder, settings, reusable)
    return Fads(finder, reusable)
