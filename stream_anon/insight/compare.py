"""Run the same rows under many settings: every k, bound and algorithm once, each with a policy of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pydantic import SecretStr

from stream_anon.batch import ALGORITHMS
from stream_anon.batch.support import check
from stream_anon.core.batch import Batch
from stream_anon.core.schema import Schema
from stream_anon.errors import StreamAnonError, nearest
from stream_anon.local.trial import Progress, Trial, try_batch, try_stream
from stream_anon.policy import LoadedPolicy
from stream_anon.policy.settings import STREAM_ALGORITHMS, MaxDelay

STREAM = STREAM_ALGORITHMS.words


class UnknownAlgorithm(StreamAnonError):
    """No algorithm has the given name."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Setting:
    """The setting of one run: an algorithm, k, and the bound, None for a batch algorithm."""

    algorithm: str
    k: int
    bound: MaxDelay | None


def settings_of(algorithms: Sequence[str], ks: Sequence[int], bounds: Sequence[MaxDelay]) -> list[Setting]:
    """Return all combinations, in the order of a table: by k, then by algorithm, then by bound."""
    for name in algorithms:
        known = [*STREAM_ALGORITHMS.words, *ALGORITHMS]
        if name not in known:
            raise UnknownAlgorithm(f'"{name}" is no algorithm: {nearest(name, known)} (all: {", ".join(known)})')
    bounds_of = {name: bounds if name in STREAM_ALGORITHMS.words else (None,) for name in algorithms}
    return [Setting(name, k, bound) for k in ks for name in algorithms for bound in bounds_of[name]]


class Comparison:
    """A comparison of settings over rows that are encoded once."""

    def __init__(self, loaded: LoadedPolicy, rate: float) -> None:
        # Sensitive values are known by keyed hashes: one secret for all runs, so that the rows fit each of them.
        secret = loaded.policy.secret or SecretStr("any one will do: nothing is published")
        self._loaded = replace(loaded, policy=loaded.policy.model_copy(update={"secret": secret}))
        self.rate = rate
        self.rows: Batch | None = None

    def schema(self, setting: Setting | None = None) -> Schema:
        """Return the policy as it is, or under a setting, whose k replaces every k in the policy."""
        policy = self._loaded.policy
        if setting is not None:
            models = [model.with_people(setting.k) for model in policy.privacy]
            changes: dict[str, object] = {"privacy": models}
            if setting.bound is not None:
                changes["stream"] = policy.stream.model_copy(update={"max_delay": setting.bound})
                if policy.algorithm.name != setting.algorithm:
                    changes["algorithm"] = STREAM_ALGORITHMS[setting.algorithm].model_validate(
                        {"name": setting.algorithm}
                    )
            policy = policy.model_copy(update=changes)
        return Schema.compile(replace(self._loaded, policy=policy))

    def without(self, name: str) -> Comparison:
        """Return a comparison under the same policy without one of its attributes."""
        policy = self._loaded.policy
        left = {other: attribute for other, attribute in policy.attributes.items() if other != name}
        return Comparison(replace(self._loaded, policy=policy.model_copy(update={"attributes": left})), self.rate)

    def refuse_early(self, settings: Sequence[Setting]) -> None:
        """Raise before the first run for a policy that an algorithm cannot honour."""
        for setting in settings:
            schema = self.schema(setting)
            if setting.bound is None:
                check(setting.algorithm, schema)

    def run(self, setting: Setting, progress: Progress) -> Trial:
        """Run one setting and return its trial."""
        schema = self.schema(setting)
        if setting.bound is None:
            return try_batch(schema, self.rows, setting.algorithm, progress)
        return try_stream(schema, self.rows, self.rate, progress)


def bound_in_words(bound: MaxDelay | None) -> str:
    """Return a delay bound in words.

    >>> bound_in_words(MaxDelay(records=500)), bound_in_words(MaxDelay(time=5.0)), bound_in_words(None)
    ('500 records', '5 s', 'whole table')
    """
    if bound is None:
        return "whole table"
    return " or ".join(_words(bound))


def _words(bound: MaxDelay) -> Iterator[str]:
    if bound.time is not None:
        yield f"{bound.time:g} s"
    if bound.records is not None:
        yield f"{bound.records:,} records"
