"""Gets the kernels of an algorithm compiled, or read from disk, before a clock runs; nothing of it is published."""

from __future__ import annotations

import gc
from dataclasses import replace
from itertools import islice

from stream_anon import demo
from stream_anon.core.schema import Schema
from stream_anon.local.pipeline import Pipeline
from stream_anon.policy import Policy
from stream_anon.policy.privacy import LDiversity

_RECORDS, _AT_ONCE = 240, 12


def warm_up(wanted: Policy) -> None:
    """Run made-up records through a policy's algorithm, under a policy that counts and one that weighs shares.

    Compiled code depends on the kinds of the arrays, not on the policy, so the demo's policy stands for any; but one
    quasi-identifier alone is another kind. What was loaded by then stays for good: the garbage collector need not look
    through it again and again.
    """
    loaded, algorithm = demo.policy(), wanted.algorithm
    if len(_quasi(wanted)) == 1:
        _, *others = _quasi(loaded.policy)
        attributes = {name: facts for name, facts in loaded.policy.attributes.items() if name not in others}
        loaded = replace(loaded, policy=loaded.policy.model_copy(update={"attributes": attributes}))
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


def _quasi(policy: Policy) -> list[str]:
    return [name for name, facts in policy.attributes.items() if facts.role == "quasi_identifier"]
