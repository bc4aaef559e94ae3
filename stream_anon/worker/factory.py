"""Build a worker from a policy: refuse what is not reproducible, and reserve time for announcing and publishing."""

from __future__ import annotations

import hashlib
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace

from stream_anon.core.encode import Encoder
from stream_anon.core.gate import Reason, release
from stream_anon.core.schema import Schema
from stream_anon.errors import Problem, StreamAnonError
from stream_anon.formats.messages.messages import Messages
from stream_anon.formats.messages.registry import RegistryAwayError
from stream_anon.kafka.clients import client_of
from stream_anon.kafka.reachable import require_broker
from stream_anon.kafka.transport import AbortableError, Transport
from stream_anon.policy.policy import Policy
from stream_anon.policy.settings import KafkaSettings
from stream_anon.stream import build as build_engine
from stream_anon.worker.claim import Claim, OutputClaim, claim_group
from stream_anon.worker.core import Core
from stream_anon.worker.ledger.budget import IN_TOPIC, INLINE, LedgerBudget
from stream_anon.worker.pace.schedule import engine_bound
from stream_anon.worker.settings import WorkerSettings
from stream_anon.worker.takeover.restore import Start

_log = logging.getLogger("stream_anon.worker")

_KAFKA = "add kafka: {bootstrap: HOST:PORT, group: NAME, input: TOPIC, output: TOPIC}"


def problems(policy: Policy) -> list[Problem]:
    """Return what keeps a policy from running on Kafka: anything that could make a group differ the second time."""
    found = []
    if policy.kafka is None:
        found.append(Problem((), "no-kafka", "the policy has no `kafka` part", _KAFKA))
    if policy.secret is None:
        why = "a worker that takes over could not publish the same groups again without a secret"
        found.append(Problem((), "no-secret", why, "secret: ${STREAM_ANON_SECRET}"))
    if getattr(policy.algorithm, "reuse", False):
        why = "a group published with an old box cannot be made again from its members"
        found.append(Problem(("algorithm", "reuse"), "reuse", why, "reuse: false"))
    budget = _budget(policy)
    for i, model in enumerate(policy.privacy):
        if model.learns:
            why = "a model that learns from the stream could judge the same group differently after a restart"
            found.append(Problem(("privacy", i, "estimate"), "estimate", why, "give a fixed table instead"))
        if model.people > budget.largest_k:
            why = f"a group is announced in one ledger, which holds k up to {budget.largest_k}"
            way = "name a topic for ledgers: kafka: {ledger: TOPIC}" if budget is INLINE else ""
            found.append(Problem(("privacy", i, "k"), "k-too-large", why, way))
    return found


def _budget(policy: Policy) -> LedgerBudget:
    return INLINE if policy.kafka is None or policy.kafka.ledger is None else IN_TOPIC


def core_of(schema: Schema) -> Core:
    """Return the core of a policy, with engines that release early enough to announce and publish in time."""
    stream = schema.policy.stream
    delay = stream.max_delay.time
    if delay is not None:
        bound = stream.max_delay.model_copy(update={"time": engine_bound(delay)})
        stream = stream.model_copy(update={"max_delay": bound})
    early = replace(schema, policy=schema.policy.model_copy(update={"stream": stream}))
    messages = Messages(schema)
    writer, encode = messages.writer(), Encoder(schema, reader=messages.reader).encode
    return Core(
        encode=encode if messages.registry is None else _patiently()(encode),
        engine=lambda: build_engine(early),
        release=lambda rows: release(rows, schema, Reason.READY),
        write=writer.write,
        fingerprint=fingerprint_of(schema),
        key=schema.keys.ledger,
        writable=lambda rows: [writer.writable(values) for values in rows.values.tolist()],
        learn=None if messages.registry is None else _patiently()(messages.learn),
    )


@contextmanager
def _patiently() -> Iterator[None]:
    """Tell the loop to ask again while the registry is away."""
    try:
        yield
    except RegistryAwayError as error:
        raise AbortableError(str(error)) from None


def settings_of(policy: Policy, start: Start | None = None) -> WorkerSettings:
    """Return the settings of a policy's worker."""
    kafka = kafka_of(policy)
    largest = max((max(model.people, 1) for model in policy.privacy), default=1)
    return WorkerSettings(
        kafka.input,
        kafka.output,
        kafka.dead_letter,
        kafka.dead_letter_payload,
        policy.stream.max_delay.time,
        apart=policy.stream.scope == "partition",
        start=start,
        most_waiting=policy.stream.max_buffer,
        pause_at=_budget(policy).pause_at(largest),
        ledger=kafka.ledger,
    )


def kafka_of(policy: Policy) -> KafkaSettings:
    """Return the `kafka` part of a policy; raise if it is missing."""
    if policy.kafka is None:
        raise StreamAnonError(f"the policy has no `kafka` part: {_KAFKA}")
    return policy.kafka


def transport_of(kafka: KafkaSettings, instance: str | None = None, static: bool = False) -> Transport:
    """Return the connection of one worker slot; a `static` member keeps its partitions over a short absence."""
    options = dict(kafka.options)
    if static and instance is not None:
        options.setdefault("group.instance.id", instance)
    return client_of(kafka.client).transport(
        kafka.bootstrap,
        kafka.group,
        kafka.input,
        transactional_id=transactional_id(kafka.group, instance),
        options=options,
    )


@contextmanager
def output_claim(kafka: KafkaSettings) -> Iterator[OutputClaim]:
    """Open the claim on the policy's output; joining its reserved group is left to whoever writes it."""
    options = {name: value for name, value in kafka.options.items() if name != "group.instance.id"}
    transport = client_of(kafka.client).transport(
        kafka.bootstrap,
        claim_group(kafka.output),
        kafka.output,
        transactional_id=transactional_id(kafka.group, None) + "-claim",
        options=options,
    )

    def check_rights() -> None:
        """Name the right that is missing, if one is."""
        with (
            closing(client_of(kafka.client).probe(kafka.bootstrap, claim_group(kafka.output), options)) as probe,
            suppress(AbortableError),  # a new broker has to find its coordinator first
        ):
            probe.group_state()

    try:
        yield OutputClaim(transport, kafka.output, check_rights, kafka.ledger)
    finally:
        transport.close()


def hold_output(kafka: KafkaSettings, schema: Schema, *, takeover: bool = False) -> None:
    """Claim the output for this group and policy; raise `OutputTakenError` if it is another's."""
    require_broker(kafka.bootstrap, kafka.options)
    with output_claim(kafka) as claim:
        before = claim.hold(claim_of(kafka, schema, claim.topic_id), takeover=takeover)
    if before is not None and takeover:
        _log.warning("took the output over", extra={"from_group": before.group, "from_policy": before.policy})


def claim_of(kafka: KafkaSettings, schema: Schema, topic_id: str) -> Claim:
    """Return the claim of a policy's workers."""
    return Claim(kafka.group, fingerprint_of(schema).hex(), kafka.input, topic_id)


def fingerprint_of(schema: Schema) -> bytes:
    """Return the fingerprint of a policy as ledgers and claims carry it; the format of messages is a part of it."""
    kafka, fingerprint = schema.policy.kafka, bytes.fromhex(schema.fingerprint)
    if kafka is not None and kafka.format not in ("auto", "json"):
        fingerprint = hashlib.blake2b(fingerprint + kafka.format.encode(), digest_size=16).digest()
    return fingerprint[:8]


def transactional_id(group: str, instance: str | None) -> str:
    """Return the transactional id of a worker slot.

    A named slot fences its predecessor at once; an unnamed one waits for the time-out.
    """
    slot = instance or f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
    return f"stream-anon-{group}-{slot}"
