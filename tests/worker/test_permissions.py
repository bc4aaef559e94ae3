"""What doctor and a worker say when the broker forbids something: access lists on, one right missing at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from broker_world import World, each_client
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
)

from stream_anon.kafka.clients import client_of
from stream_anon.kafka.doctor import Doctor
from stream_anon.kafka.local_broker.broker import LocalBroker
from stream_anon.kafka.transport import NotAllowedError
from stream_anon.policy.settings import KafkaSettings
from stream_anon.worker.claim import Claim, claim_group
from stream_anon.worker.factory import output_claim

RIGHTS = {
    # what, kind, name after the test's own, operations
    "input": (ResourceType.TOPIC, "{}-in", ("READ", "DESCRIBE_CONFIGS")),
    "output": (ResourceType.TOPIC, "{}-out", ("READ", "WRITE", "DESCRIBE_CONFIGS")),
    "dead": (ResourceType.TOPIC, "{}-dead", ("WRITE", "DESCRIBE_CONFIGS")),
    "ledger": (ResourceType.TOPIC, "{}-ledger", ("READ", "WRITE", "DESCRIBE_CONFIGS")),
    "group": (ResourceType.GROUP, "{}", ("READ",)),
    "claim": (ResourceType.GROUP, "stream-anon-output-{}-out", ("READ",)),
    "transactions": (ResourceType.TRANSACTIONAL_ID, "stream-anon-{}-", ("WRITE",)),
}


class Guest:
    """A user who may do what a worker needs, less what a test takes away."""

    def __init__(self, broker: LocalBroker, world: World) -> None:
        self.broker, self.world = broker, world
        self.options: dict[str, Any] = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": broker.guest,
            "sasl.password": broker.password,
            "ssl.ca.location": str(broker.certificate),
        }

    def allow(self, lacking: tuple[str, str] | None = None, *more: tuple[str, str]) -> None:
        wanted = [(what, operation) for what, (_, _, operations) in RIGHTS.items() for operation in operations]
        allowed = [right for right in wanted if right != lacking] + list(more)
        self.world.admin.create_acls([self._acl(*right) for right in allowed])

    def _acl(self, what: str, operation: str) -> ACL:
        kind, name, _ = RIGHTS[what]
        prefix = ACLResourcePatternType.PREFIXED if name.endswith("-") else ACLResourcePatternType.LITERAL
        pattern = ResourcePattern(kind, name.format(self.world.name), prefix)
        principal = f"User:{self.broker.guest}"
        return ACL(principal, "*", ACLOperation[operation], ACLPermissionType.ALLOW, pattern)

    def findings(self) -> dict[str, str]:
        """What doctor finds wrong: detail and remedy by question."""
        world = self.world
        broker = client_of(world.client).probe(self.broker.sasl_bootstrap, world.name, self.options)
        doctor = Doctor(broker, world.name, world.input, world.output, world.dead, world.ledger)
        told = {found.question: f"{found.detail}: {found.remedy}" for found in doctor.examine() if not found.good}
        broker.close()
        return told


@pytest.fixture
def guest(bootstrap: str, local_broker: LocalBroker, name: str, client: str) -> Iterator[Guest]:
    if bootstrap != local_broker.bootstrap:
        pytest.skip("the broker under test is not ours")
    world = World(bootstrap, name, client).create().keep_ledgers()
    yield Guest(local_broker, world)
    world.close()


CASES = [
    # remark, what is taken away, what is left of it, which question shows it, what it says after "allow"
    ("all a worker needs", None, (), None, ""),
    ("may not see the input", ("input", "READ"), (), "input topic", "READ on topic {}-in"),
    ("may see and not read", ("input", "READ"), (("input", "DESCRIBE"),), "input topic", "READ on topic {}-in"),
    ("settings hidden", ("output", "DESCRIBE_CONFIGS"), (), "output topic", "DESCRIBE_CONFIGS on topic {}-out"),
    ("may not write", ("output", "WRITE"), (), "output topic", "WRITE on topic {}-out"),
    ("may write and not claim", ("output", "READ"), (), "output topic", "READ on topic {}-out"),
    ("may see and not write", ("output", "WRITE"), (("output", "DESCRIBE"),), "output topic", "WRITE on topic {}-out"),
    ("no dead letters", ("dead", "WRITE"), (), "dead-letter topic", "WRITE on topic {}-dead"),
    ("ledgers not read", ("ledger", "READ"), (), "ledger topic", "READ on topic {}-ledger"),
    ("not in the group", ("group", "READ"), (), "group", "READ on group {}"),
    (
        "no transactions",
        ("transactions", "WRITE"),
        (("transactions", "DESCRIBE"),),
        "transactions",
        "WRITE on transactional ids that begin with stream-anon-{}-",
    ),
]


@each_client
@pytest.mark.parametrize(("lacking", "left", "question", "remedy"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_doctor_names_the_right_that_is_missing(
    guest: Guest, lacking: tuple[str, str] | None, left: tuple[tuple[str, str], ...], question: str | None, remedy: str
) -> None:
    guest.allow(lacking, *left)
    if lacking is None or question is None:
        assert guest.findings() == {}
        return
    told = f"no permission to {lacking[1]}: allow {remedy.format(guest.world.name)}"
    assert guest.findings() == {question: told}


@each_client
def test_a_worker_that_may_not_see_how_its_output_is_kept_does_not_start(guest: Guest) -> None:
    guest.allow(("output", "DESCRIBE_CONFIGS"))
    world = guest.world
    world.produce(b"1", b"2", b"3")
    transport_id = f"stream-anon-{world.name}-w"
    transport = client_of(world.client).transport(
        guest.broker.sasl_bootstrap, world.name, world.input, transactional_id=transport_id, options=guest.options
    )
    world.transports.append(transport)
    with pytest.raises(NotAllowedError, match="allow DESCRIBE_CONFIGS on topic"):
        transport.facts(world.output)


@each_client
@pytest.mark.parametrize("lacking", [None, ("claim", "READ")], ids=["allowed", "not allowed"])
def test_who_may_not_claim_the_output_is_told(guest: Guest, lacking: tuple[str, str] | None) -> None:
    guest.allow(lacking)
    world, address = guest.world, guest.broker.sasl_bootstrap
    kafka = KafkaSettings(
        bootstrap=address,
        group=world.name,
        input=world.input,
        output=world.output,
        client=world.client,  # type: ignore[arg-type]
        options=guest.options,
    )
    if lacking is None:
        with output_claim(kafka) as claim:
            mine = Claim(world.name, "00", world.input, claim.topic_id)
            claim.hold(mine)
            assert claim.holder() == mine
        return
    with (
        pytest.raises(NotAllowedError, match=f"allow READ on group {claim_group(world.output)}"),
        output_claim(kafka) as claim,
    ):
        claim.holder()
