"""Every batch algorithm by its name: those of this package, and those that other distributions add.

A distribution declares the class of an algorithm as an entry point of the group `stream_anon.batch_algorithms`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from stream_anon.batch.guarding import Guarding
from stream_anon.batch.k_member import KMember
from stream_anon.batch.l_clustering import LClustering
from stream_anon.batch.l_incognito import LIncognito
from stream_anon.batch.lc_clustering import LCClustering
from stream_anon.batch.mondrian import Mondrian
from stream_anon.batch.partitioner import Partitioner, Support
from stream_anon.batch.sweep import Sweep
from stream_anon.errors import PluginError
from stream_anon.grammar.fields import Settings
from stream_anon.grammar.registry import word_of
from stream_anon.plugins import installed

GROUP = "stream_anon.batch_algorithms"


class Factory(Protocol):
    """The class of an algorithm: settings and a seed make a partitioner."""

    settings: type[Settings]
    support: Support
    nanoseconds: float

    def __call__(self, settings: Any, seed: int) -> Partitioner:
        """Return the algorithm under these settings."""
        ...


class Algorithms(Mapping[str, Factory]):
    """Name to class, in the order in which they are told.

    Those of other distributions are loaded when somebody asks, for they import this package.
    """

    def __init__(self) -> None:
        self._own: dict[str, Factory] = {}
        self._loaded = False

    @property
    def _known(self) -> dict[str, Factory]:
        if not self._loaded:
            self._loaded = True  # before the first of them can ask
            try:
                for place, algorithm in installed(GROUP):
                    self.add(algorithm, place)
            except BaseException:
                self._loaded = False  # whoever asks again gets the same answer
                raise
        return self._own

    def __getitem__(self, name: str) -> Factory:
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def add(self, algorithm: Any, place: str = "this program") -> str:
        """Add an algorithm and return its name; raise PluginError for what is none, or has a name that is taken."""
        settings = getattr(algorithm, "settings", None)
        name = word_of(settings, "name") if isinstance(settings, type) and issubclass(settings, Settings) else None
        if name is None or not isinstance(getattr(algorithm, "support", None), Support) or not callable(algorithm):
            raise PluginError(f"{place}: not a class with settings that have a name, and with support")
        if self._own.setdefault(name, algorithm) is not algorithm:
            raise PluginError(f'{place}: a batch algorithm is called "{name}" already')
        return name

    def remove(self, name: str) -> None:
        """Take back an algorithm that a program added."""
        del self._own[name]


ALGORITHMS = Algorithms()
for _algorithm in (Mondrian, Sweep, KMember, LClustering, LIncognito, LCClustering, Guarding):
    ALGORITHMS.add(_algorithm, __name__)
