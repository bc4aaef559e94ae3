"""How the stream runs: the delay bound, the algorithm and its parameters, the Kafka topics."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from stream_anon.grammar.fields import Duration, Number, Settings, Share


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


class CailSettings(Settings):
    """CAIL rounds: rows join clusters by CAILDistance; what is due is completed by its nearest company.

    With `transient` clusters each newcomer opens one around itself, which leaves at once or dissolves; with `standing`
    ones rows stay in up to `max_clusters` clusters, as the source describes. A cluster forms within `threshold`, or if
    that is not given within `patience` times the average loss of the last `memory` groups. `opportunity` is how much a
    row's own hardness to place speaks for taking it as company.
    """

    name: Literal["cail"]
    clusters: Literal["auto", "transient", "standing"] = "auto"
    patience: Annotated[Number, Field(gt=0, lt=1)] = 0.12
    threshold: Annotated[Number, Field(ge=0)] | None = None
    opportunity: Annotated[Number, Field(ge=0)] = 0.7
    max_clusters: int = Field(default=1000, ge=1, le=1_000_000)
    memory: int = Field(default=100, ge=1, le=1_000_000)
    completion: Literal["auto", "nearest", "merge"] = "auto"
    loss: Literal["ncp", "leaves", "descendants", "subtree"] = "ncp"


class CastleSettings(Settings):
    """Settings of CASTLE, a baseline."""

    name: Literal["castle"]
    max_clusters: int = Field(default=50, ge=1, le=1_000_000)
    memory: int = Field(default=100, ge=1, le=1_000_000)
    reuse: bool = False


class FadsSettings(Settings):
    """Settings of FADS, a baseline."""

    name: Literal["fads"]
    reuse: bool = False


AlgorithmSettings = Annotated[CailSettings | CastleSettings | FadsSettings, Field(discriminator="name")]


class KafkaSettings(Settings):
    """Where records come from and go to. `options` are passed to the client by their Kafka names.

    `client` is the library that talks to the broker; `auto` takes confluent-kafka, the faster one, where it is
    installed, else kafka-python.
    """

    bootstrap: str
    group: str
    input: str
    output: str
    dead_letter: str | None = None
    dead_letter_payload: bool = False
    client: Literal["auto", "kafka-python", "confluent-kafka"] = "auto"
    options: dict[str, Any] = Field(default_factory=dict, repr=False)  # may hold passwords


__all__ = [
    "AlgorithmSettings",
    "CailSettings",
    "CastleSettings",
    "FadsSettings",
    "KafkaSettings",
    "MaxDelay",
    "Share",
    "StreamSettings",
]
