"""What is done to workers, broker and line in the kill test: one function for each kind of failure.

A failure begins, lasts a while, and is mended; workers that ended because of it are replaced all the time.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka import KafkaProducer
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import KafkaError
from line import KINDS as LINE_KINDS

from stream_anon.kafka.local_broker.broker import LocalBroker

if TYPE_CHECKING:
    from chaos import Chaos

PATIENCE = 40.0  # seconds for a worker to end: it needs less than 10, unless its client hangs
ACCESS_LISTS = (
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
    "allow.everyone.if.no.acl.found=true\nsuper.users=User:nobody\n"
)
NOBODY = "User:ANONYMOUS"


def kill(chaos: Chaos) -> None:
    """A worker is gone without a word."""
    victim = chaos.random.choice(chaos.workers)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    chaos.supervise(chaos.random.uniform(0.0, 2.0))


def stop(chaos: Chaos) -> None:
    """A worker stands still until it is evicted, and goes on as if nothing had happened."""
    victim = chaos.random.choice(chaos.workers)
    victim.send_signal(signal.SIGSTOP)
    chaos.supervise(9.0)
    victim.send_signal(signal.SIGCONT)
    chaos.supervise(chaos.random.uniform(1.0, 4.0))


def rebalance(chaos: Chaos) -> None:
    """A worker joins, and leaves in good order."""
    extra = chaos.start_worker()
    chaos.supervise(chaos.random.uniform(4.0, 6.0))
    if extra.poll() is None:
        extra.send_signal(signal.SIGTERM)
        try:
            extra.wait(PATIENCE)
        except subprocess.TimeoutExpired:  # a client that hangs: one more failure to survive
            chaos.events["slow_stop"] += 1
            extra.kill()
            extra.wait()
    chaos.supervise(1.0)


def clock(chaos: Chaos) -> None:
    """The wall clock of a worker jumps by up to an hour, forwards or back."""
    chaos.random.choice(chaos.workers).send_signal(signal.SIGUSR1)
    chaos.supervise(chaos.random.uniform(0.5, 3.0))


def broker(chaos: Chaos) -> None:
    """The only broker is ended, gracefully or not, and started again."""
    _own(chaos).restart(kill=chaos.random.random() < 0.5)
    chaos.supervise(5.0)


def disk(chaos: Chaos) -> None:
    """The broker's disk takes no more: it ends by itself, and is started again when there is room."""
    own = _own(chaos)
    assert own.pid is not None
    resource.prlimit(own.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    end = time.monotonic() + 60
    while own.runs and time.monotonic() < end:
        chaos.supervise(0.5)
    chaos.events["disk_unnoticed"] += own.runs
    own.restart(kill=True)
    chaos.supervise(5.0)
    if not _takes_records(chaos):  # it answers, and its partitions stay offline: what its operator would do
        chaos.events["disk_again"] += 1
        own.restart()
        chaos.supervise(5.0)


def denied(chaos: Chaos) -> None:
    """The right to write transactions, or to be in the group, is taken from the workers and given back."""
    kind, name, pattern = chaos.random.choice(
        [
            (ResourceType.TRANSACTIONAL_ID, f"stream-anon-{chaos.group}-", ACLResourcePatternType.PREFIXED),
            (ResourceType.GROUP, chaos.group, ACLResourcePatternType.LITERAL),
        ]
    )
    with contextlib.closing(chaos.admin()) as admin:
        what = ResourcePattern(kind, name, pattern)
        admin.create_acls([ACL(NOBODY, "*", ACLOperation.ALL, ACLPermissionType.DENY, what)])
        chaos.supervise(chaos.random.uniform(2.0, 10.0))
        match = ResourcePatternFilter(kind, name, pattern)
        admin.delete_acls([ACLFilter(NOBODY, "*", ACLOperation.ANY, ACLPermissionType.ANY, match)])
    chaos.supervise(2.0)


def wider_input(chaos: Chaos) -> None:
    """The input gets another partition, and the ledger topic before it; records go there as soon as it is known."""
    _widen(chaos, [role for role in ("ledger", "in") if role in chaos.topics])


def wider_output(chaos: Chaos) -> None:
    """The output gets another partition."""
    _widen(chaos, ["out"])


def _widen(chaos: Chaos, roles: list[str]) -> None:
    with contextlib.closing(chaos.admin()) as admin:
        for role in roles:
            chaos.partitions[role] += 1
            admin.create_partitions({chaos.topics[role]: chaos.partitions[role]})
    chaos.supervise(chaos.random.uniform(1.0, 5.0))


def node(chaos: Chaos) -> None:
    """One of three nodes is gone for a while; in one of four cases another one with it."""
    assert chaos.cluster is not None
    gone = chaos.random.sample(chaos.cluster.nodes, 2 if chaos.random.random() < 0.25 else 1)
    for each in gone:
        each.stop(kill=True)
    chaos.supervise(chaos.random.uniform(1.0, 12.0))
    for each in gone:
        each.launch()
    for each in gone:
        each.await_ready()
    chaos.supervise(3.0)


def left_behind(chaos: Chaos) -> None:
    """A node is away until it is left behind, then the two others are gone, and it leads what it has."""
    assert chaos.cluster is not None
    late, *others = chaos.random.sample(chaos.cluster.nodes, len(chaos.cluster.nodes))
    late.stop(kill=True)
    chaos.supervise(10.0)
    first, second = others
    first.stop(kill=True)
    late.launch()
    late.await_ready()
    chaos.supervise(15.0)
    first.launch()
    first.await_ready()
    chaos.supervise(5.0)
    assert second.runs


def _own(chaos: Chaos) -> LocalBroker:
    assert chaos.broker is not None
    return chaos.broker


def _takes_records(chaos: Chaos) -> bool:
    """Tell whether the broker takes a record for each partition of the dead letters, which nobody counts."""
    times = {"request_timeout_ms": 10_000, "delivery_timeout_ms": 15_000}
    with contextlib.closing(KafkaProducer(bootstrap_servers=chaos.bootstrap, **times)) as canary:
        sent = [canary.send(chaos.topics["dead"], value=b"{}", partition=number) for number in range(2)]
        try:
            return all(each.get(timeout=20) for each in sent)
        except KafkaError:
            return False


def _line(kind: str) -> Callable[[Chaos], None]:
    def spoil(chaos: Chaos) -> None:
        assert chaos.line is not None
        chaos.line.spoil(kind)
        chaos.supervise(chaos.random.uniform(1.0, 15.0))
        chaos.line.mend()
        chaos.supervise(1.0)

    return spoil


FAULTS: dict[str, Callable[[Chaos], None]] = {
    "kill": kill,
    "stop": stop,
    "rebalance": rebalance,
    "clock": clock,
    "broker": broker,
    "disk": disk,
    "denied": denied,
    "wider_input": wider_input,
    "wider_output": wider_output,
    "node": node,
    "left_behind": left_behind,
    **{kind: _line(kind) for kind in LINE_KINDS},
}


def usual(chaos: Chaos) -> list[str]:
    """Return the kinds of failure that can be had here, some of them more than once."""
    if chaos.options.unclean:
        return ["left_behind"]
    kinds = ["kill"] * 5 + ["stop"] * 2 + ["rebalance"] * 2 + ["clock", "wider_input", "wider_output"]
    if chaos.broker is not None and chaos.options.broker_restarts:
        kinds += ["broker", "denied", "disk"]
    if chaos.cluster is not None:
        kinds += ["node"] * 4
    if chaos.line is not None:
        kinds += LINE_KINDS * 3
    return kinds
