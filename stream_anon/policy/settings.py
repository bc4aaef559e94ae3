"""How the stream runs: the delay bound, the algorithm and its parameters, the Kafka topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, SecretStr

from stream_anon.errors import Problem
from stream_anon.grammar.fields import Duration, Number, Settings, Share
from stream_anon.grammar.registry import Registry

if TYPE_CHECKING:
    from stream_anon.core.schema import Schema
    from stream_anon.stream.algorithm import Algorithm
    from stream_anon.stream.buffer import Buffer


class MaxDelay(Settings):
    """The longest a record may wait: by the clock, by later arrivals, or by whichever comes first."""

    time: Duration | None = None
    records: int | None = Field(default=None, ge=1, le=1_000_000_000)


class StreamSettings(Settings):
    """The delay bound, and what happens at its edge.

    `on_deadline` decides about records for which no group can be made in time: `suppress` drops them, `hold` keeps
    them back. `scope: partition` never puts records of two partitions into one group.
    """

    max_delay: MaxDelay = MaxDelay(time=5.0, records=10_000)
    on_deadline: Literal["suppress", "hold"] = "suppress"
    max_buffer: int = Field(default=200_000, ge=2, le=1_000_000_000)
    scope: Literal["worker", "partition"] = "worker"


class StreamAlgorithmSettings(Settings):
    """The settings of a stream algorithm.

    A subclass narrows `name` to the literal by which a policy chooses it, and `build`s the algorithm. Those of this
    package are built by the engine's own room, `stream`.
    """

    name: str

    def rules(self) -> Iterator[Problem]:
        """Yield what is contradictory in the settings; paths are relative to the algorithm's entry in the policy."""
        yield from ()

    def build(self, schema: Schema, buffer: Buffer) -> Algorithm | None:
        """Return the algorithm for a policy, choosing among the rows of this buffer."""
        return None


class CailSettings(StreamAlgorithmSettings):
    """CAIL rounds: clusters form by CAILDistance; what is due is cleared together with all that is near.

    With `transient` clusters each newcomer opens one around itself, which leaves at once or dissolves; with `standing`
    ones rows stay in up to `max_clusters` clusters, as the source describes, and what is due is completed by its
    `nearest` rows or by merging clusters (`merge`). `auto` means clusters that stand, and merge, where fewer than 4 k
    records arrive within the bound, or where the loss counts nodes, as the source's does. A cluster forms within
    `threshold`, or if that is not given within `patience` times the average loss of the last `memory` groups.
    """

    name: Literal["cail"]
    clusters: Literal["auto", "transient", "standing"] = "auto"
    patience: Annotated[Number, Field(gt=0, lt=1)] = 0.12
    threshold: Annotated[Number, Field(ge=0)] | None = None
    max_clusters: int = Field(default=1000, ge=1, le=1_000_000)
    memory: int = Field(default=100, ge=1, le=1_000_000)
    completion: Literal["auto", "nearest", "merge"] = "auto"
    loss: Literal["ncp", "leaves", "descendants", "subtree"] = "ncp"


class CastleSettings(StreamAlgorithmSettings):
    """Settings of CASTLE, a baseline."""

    name: Literal["castle"]
    max_clusters: int = Field(default=50, ge=1, le=1_000_000)
    memory: int = Field(default=100, ge=1, le=1_000_000)
    reuse: bool = False


class FadsSettings(StreamAlgorithmSettings):
    """Settings of FADS, a baseline."""

    name: Literal["fads"]
    reuse: bool = False


STREAM_ALGORITHMS: Registry[StreamAlgorithmSettings] = Registry(
    StreamAlgorithmSettings, key="name", group="stream_anon.stream_algorithms"
)
"""Every stream algorithm by its name; other distributions add theirs by entry points of that group."""

for _kind in (CailSettings, FadsSettings, CastleSettings):
    STREAM_ALGORITHMS.add(_kind)

AlgorithmSettings = Annotated[StreamAlgorithmSettings, STREAM_ALGORITHMS]


class RegistrySettings(Settings):
    """Where the schemas of messages are kept: any registry with Confluent's interface.

    `url` is one address or several, tried in turn. Credentials are a `username` with a `password`, a `token`, or a
    client's `certificate` with its `key`; `ca` is whom to trust. `subject` says under which name the schema of the
    output is registered: by topic, by record, or by both. With `register_schema: false` it has to be there already.
    """

    url: str | list[str]
    username: str | None = None
    password: SecretStr | None = None
    token: SecretStr | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    subject: Literal["topic", "record", "topic_record"] = "topic"
    register_schema: bool = True
    timeout: Duration = 5.0


class KafkaSettings(Settings):
    """Where records come from and go to. `options` are passed to the client by their Kafka names.

    `ledger` is a compacted topic in which workers keep what waits and what is announced. Without one they keep it
    beside their offsets, where a partition has room for some 20,000 records that wait.

    `client` is the library that talks to the broker; `auto` takes confluent-kafka, the faster one, where it is
    installed, else kafka-python. `format` is what messages are in, read and written: with `auto` each is read as what
    it is, and the output is in the format that the `registry` has for the input, or JSON.
    """

    bootstrap: str
    group: str
    input: str
    output: str
    dead_letter: str | None = None
    dead_letter_payload: bool = False
    ledger: str | None = None
    client: Literal["auto", "kafka-python", "confluent-kafka"] = "auto"
    format: Literal["auto", "json", "avro", "protobuf", "json_schema"] = "auto"
    registry: RegistrySettings | None = None
    options: dict[str, Any] = Field(default_factory=dict, repr=False)  # may hold passwords


__all__ = [
    "STREAM_ALGORITHMS",
    "AlgorithmSettings",
    "CailSettings",
    "CastleSettings",
    "FadsSettings",
    "KafkaSettings",
    "MaxDelay",
    "RegistrySettings",
    "Share",
    "StreamAlgorithmSettings",
    "StreamSettings",
]
