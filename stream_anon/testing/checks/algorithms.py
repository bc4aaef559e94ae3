"""One door for both kinds of algorithms."""

from __future__ import annotations

from typing import Any

from stream_anon.policy.settings import STREAM_ALGORITHMS, StreamAlgorithmSettings
from stream_anon.testing.checks.batches import check_batch_algorithm
from stream_anon.testing.checks.streams import check_stream_algorithm
from stream_anon.testing.contract.registered import registered


def check_algorithm(algorithm: StreamAlgorithmSettings | Any, seed: int = 0) -> None:
    """Check an algorithm over made-up rows, and raise an AssertionError that names the rule it breaks.

    A stream algorithm is given by its settings, a batch algorithm by its class. Each is run under every privacy model
    that it can honour.
    """
    if isinstance(algorithm, StreamAlgorithmSettings):
        with registered(STREAM_ALGORITHMS, type(algorithm)):
            check_stream_algorithm(algorithm, seed)
    else:
        check_batch_algorithm(algorithm, seed)
