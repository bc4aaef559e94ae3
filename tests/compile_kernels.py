"""Compiles the kernels before test processes start, so that they find them on disk and do not all compile the same.

`python tests/compile_kernels.py stream|batch`
"""

from __future__ import annotations

import sys
from itertools import islice

import numpy as np

from stream_anon import demo
from stream_anon.batch import ALGORITHMS, partition
from stream_anon.batch.support import check
from stream_anon.core.encode import Encoder
from stream_anon.core.schema import Schema
from stream_anon.errors import Unsupported
from stream_anon.local.warmup import warm_up
from stream_anon.policy import Policy

STREAMS = [{"name": "cail"}, {"name": "cail", "clusters": "standing"}, {"name": "castle"}, {"name": "fads"}]
COLUMNS = [{"quasi": 1, "sensitive": 1}, {"quasi": 2, "sensitive": 2}]
"""A table of one column is laid out as no other is, so that numba compiles the kernels for it apart."""


def of_columns(quasi: int, sensitive: int) -> Policy:
    line = {"kind": "interval", "range": [0, 99], "snap": [10]}
    roles = [{"role": "quasi_identifier", "type": "integer", "hierarchy": line}] * quasi
    roles += [{"role": "sensitive", "type": "category"}] * sensitive
    return Policy.model_validate(
        {
            "version": 1,
            "name": "columns",
            "attributes": {f"a{number}": role for number, role in enumerate(roles)},
            "privacy": [{"model": "k_anonymity", "k": 3}],
            "stream": {"max_delay": {"records": 40}},
        }
    )


def main(kind: str) -> None:
    policy = demo.policy().policy
    if kind == "stream":
        for algorithm in STREAMS:
            warm_up(Schema.of(Policy.model_validate(policy.model_dump() | {"algorithm": algorithm})))
        for columns in COLUMNS:
            warm_up(Schema.of(of_columns(**columns)))
        return
    schema = Schema.of(policy)
    records = list(islice(demo.admissions(0), 300))
    ref = np.stack([np.zeros(300, dtype=np.int64), np.arange(300)], axis=1)
    rows = Encoder(schema).encode(records, ref, np.zeros(300)).batch
    for name in ALGORITHMS:
        try:
            check(name, schema)
        except Unsupported:
            continue
        partition(name, rows, schema)


if __name__ == "__main__":
    main(sys.argv[1])
