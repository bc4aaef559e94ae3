"""Nothing is left to compile when a clock runs: warming up covers the policy at hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from stream_anon import demo
from stream_anon.core.kernels import COMPILED
from stream_anon.core.schema import Schema
from stream_anon.local.pipeline import Pipeline
from stream_anon.local.warmup import warm_up
from stream_anon.policy import LoadedPolicy
from stream_anon.stream.kernels.rounds import rounds_compiled


def without(loaded: LoadedPolicy, *names: str) -> LoadedPolicy:
    kept = {name: facts for name, facts in loaded.policy.attributes.items() if name not in names}
    return replace(loaded, policy=loaded.policy.model_copy(update={"attributes": kept}))


@pytest.mark.skipif(not COMPILED, reason="numba is not installed")
@pytest.mark.parametrize("dropped", [(), ("zip", "gender", "country")], ids=["several", "one quasi-identifier"])
def test_a_policy_finds_its_kernels_compiled(dropped: tuple[str, ...]) -> None:
    loaded = without(demo.policy(), *dropped)
    warm_up(loaded.policy)
    known = len(rounds_compiled.signatures)
    pipeline = Pipeline(Schema.compile(loaded))
    pipeline.feed(list(enumerate(islice(demo.admissions(1), 400))), 0.0)
    list(pipeline.finish(9.0))
    assert known == len(rounds_compiled.signatures) > 0
