"""What the commands that talk to Kafka share: a policy fit for it, and the package that is needed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from stream_anon.cli.prepare import prepare
from stream_anon.core.schema import Schema
from stream_anon.errors import PolicyError, StreamAnonError
from stream_anon.policy import LoadedPolicy

_NEEDED = ("cryptography", "prometheus_client")


def prepare_for_kafka(path: Path) -> tuple[LoadedPolicy, Schema]:
    """Load a policy and refuse what cannot be run on Kafka, with the place in the file."""
    need_clients()
    from stream_anon.runtime.build import problems

    loaded, schema = prepare(path)
    found = loaded.diagnostics(problems(loaded.policy))
    if found:
        raise PolicyError(found)
    return loaded, schema


def need_clients() -> None:
    """Name the command that brings what is missing."""
    from stream_anon.io.clients import installed

    if any(find_spec(name) is None for name in _NEEDED) or not installed():
        raise StreamAnonError("this needs a Kafka client: pip install 'stream-anon[fast]', or 'stream-anon[kafka]'")
