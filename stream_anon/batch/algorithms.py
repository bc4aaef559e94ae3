"""Every batch algorithm by its name."""

from __future__ import annotations

from typing import Any, Protocol

from stream_anon.batch.guarding import Guarding
from stream_anon.batch.k_member import KMember
from stream_anon.batch.l_clustering import LClustering
from stream_anon.batch.l_incognito import LIncognito
from stream_anon.batch.lc_clustering import LCClustering
from stream_anon.batch.mondrian import Mondrian
from stream_anon.batch.partitioner import Partitioner, Support
from stream_anon.batch.sweep import Sweep


class Factory(Protocol):
    """The class of an algorithm: settings and a seed make a partitioner."""

    support: Support

    def __call__(self, settings: Any, seed: int) -> Partitioner:
        """Return the algorithm under these settings."""
        ...


ALGORITHMS: dict[str, Factory] = {
    "mondrian": Mondrian,
    "sweep": Sweep,
    "k-member": KMember,
    "l-clustering": LClustering,
    "l-incognito": LIncognito,
    "lc-clustering": LCClustering,
    "guarding": Guarding,
}
