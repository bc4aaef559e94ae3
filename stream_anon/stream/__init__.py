"""Stream algorithms, one per file, and the engine that runs any of them. `build` makes the one a policy asks for."""

from __future__ import annotations

from stream_anon.core.hierarchy import ValueSet
from stream_anon.core.schema import Schema
from stream_anon.errors import Unsupported
from stream_anon.policy.settings import CailSettings, CastleSettings, FadsSettings
from stream_anon.stream.algorithm import Algorithm
from stream_anon.stream.anonymizer import Anonymizer, Outcome
from stream_anon.stream.buffer import Buffer
from stream_anon.stream.castle import Castle
from stream_anon.stream.company import Company, kernels_of
from stream_anon.stream.engine import Engine
from stream_anon.stream.fads import Fads
from stream_anon.stream.hosts import Hosts
from stream_anon.stream.standing import StandingClusters
from stream_anon.stream.transient import TransientClusters

REMEMBERED = 100
"""Groups that may take in a row later on, where an algorithm reuses them: as many as CASTLE averages over."""

__all__ = ["Algorithm", "Anonymizer", "Engine", "Outcome", "build"]


def build(schema: Schema, compiled: bool | None = None) -> Engine:
    """An engine for a policy; `compiled=False` takes the numpy kernels even where numba is there."""
    for column in schema.quasi:
        if isinstance(column.hierarchy, ValueSet):
            raise Unsupported(
                f'{column.name}: a hierarchy of kind "set" has no order to search in a stream; '
                'use "flat" or a tree, or the batch algorithm l-clustering'
            )
    buffer = Buffer(schema.policy.stream.max_buffer)
    company = Company(schema, buffer, kernels_of(schema, compiled))
    reuse = getattr(schema.policy.algorithm, "reuse", False)
    hosts = Hosts(REMEMBERED) if reuse else None
    return Engine(schema, buffer, _algorithm(schema, company, hosts), hosts)


def _algorithm(schema: Schema, company: Company, hosts: Hosts | None) -> Algorithm:
    match schema.policy.algorithm:
        case CastleSettings() as settings:
            return Castle(company, settings, hosts)
        case FadsSettings():
            return Fads(company, hosts)
        case CailSettings(clusters="standing") as settings:
            return StandingClusters(company, settings)
        case CailSettings() as settings:
            return TransientClusters(company, settings)
