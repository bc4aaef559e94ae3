"""Gets the kernels of an algorithm compiled, or read from disk, before a clock runs; nothing of it is published."""

from __future__ import annotations

import gc
from dataclasses import replace
from itertools import islice

from stream_anon.core.schema import Schema
from stream_anon.policy.privacy import LDiversity
from stream_anon.policy.settings import AlgorithmSettings
from stream_anon.runtime import demo
from stream_anon.runtime.pipeline import Pipeline

_RECORDS, _AT_ONCE = 240, 12


def warm_up(algorithm: AlgorithmSettings) -> None:
    """Run made-up records through the algorithm, under a policy that counts and one that weighs shares.

    Compiled code depends on the kinds of the arrays, not on the policy, so the demo's policy stands for any. What was
    loaded by then stays for good: the garbage collector need not look through it again and again.
    """
    loaded = demo.policy()
    entropy = LDiversity(model="l_diversity", attribute="diagnosis", l=2, variant="entropy")
    for privacy in (loaded.policy.privacy, [*loaded.policy.privacy, entropy]):
        policy = loaded.policy.model_copy(update={"algorithm": algorithm, "privacy": privacy})
        pipeline = Pipeline(Schema.compile(replace(loaded, policy=policy)))
        records = list(enumerate(islice(demo.admissions(0, _RECORDS), _RECORDS)))
        for start in range(0, _RECORDS, _AT_ONCE):
            pipeline.feed(records[start : start + _AT_ONCE], start / 30)  # time enough for deadlines to pass
        list(pipeline.finish(_RECORDS / 30))
    gc.collect()
    gc.freeze()
