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
    algorithm = schema.policy.algorithm.build(schema, buffer) or _algorithm(schema, buffer, reusable)
    return Engine(schema, buffer, algorithm, reusable)


def _algorithm(schema: Schema, buffer: Buffer, reusable: ReusableGroups | None) -> Algorithm:
    match schema.policy.algorithm:
        case CastleSettings() as settings:
            return Castle(GroupFinder(schema, buffer), settings, reusable)
        case FadsSettings():
            return Fads(GroupFinder(schema, buffer), reusable)
        case CailSettings() as settings if _stands(settings, schema):
            return StandingClusters(GroupFinder(schema, buffer), settings)
        case CailSettings() as settings:
            return Cail(schema, buffer, settings)
        case other:
            raise Unsupported(f'the stream algorithm "{other.name}" has settings and does not build itself')


def _stands(settings: CailSettings, schema: Schema) -> bool:
    """Tell whether clusters stand: if the policy says so or, where it leaves that open, asks for a way of such clusters
    or for a bound in which hardly any rows arrive."""
    records = schema.policy.stream.max_delay.records
    small = records is not None and records < SMALL * schema.requirements.k
    theirs = settings.loss != "ncp" or settings.completion == "merge"
    return settings.clusters == "standing" or (settings.clusters == "auto" and (small or theirs))
