"""Check whether a worker could restore the committed ledgers of a group; joins nothing and changes nothing."""

from __future__ import annotations

import time
from contextlib import suppress

from stream_anon.core.schema import Schema
from stream_anon.errors import StreamAnonError
from stream_anon.formats.messages.messages import REMEDY, Messages
from stream_anon.kafka.doctor import LONGEST_TRANSACTION, STAYS_OPEN, Finding
from stream_anon.kafka.transport import AbortableError
from stream_anon.policy.settings import KafkaSettings
from stream_anon.worker.factory import claim_of, fingerprint_of, output_claim, transport_of
from stream_anon.worker.ledger.mark import MarkSeal
from stream_anon.worker.ledger.topic import store_of
from stream_anon.worker.takeover.restore import REMEDIES, Beginning, OtherPolicyError, QuarantineError, Restorer
from stream_anon.worker.takeover.witness import Witness


def claim_finding(kafka: KafkaSettings, schema: Schema) -> Finding:
    """Tell who holds the output: nobody yet, this group under this policy, or another one."""
    question = "claim on the output"
    try:
        with output_claim(kafka) as claim:
            holder, mine = claim.holder(), claim_of(kafka, schema, claim.topic_id)
    except StreamAnonError as error:
        found, _, remedy = str(error).partition(": ")
        return Finding(question, False, found, remedy)
    if holder is None:
        return Finding(question, True, "nobody's yet: the first worker claims it")
    if holder == mine:
        return Finding(question, True, f"held by {holder}")
    remedy = "name another output, or take it over once that one has ended: stream-anon run --takeover"
    return Finding(question, False, f"held by {holder}", remedy)


def schema_findings(kafka: KafkaSettings, schema: Schema) -> list[Finding]:
    """Tell whether the registry answers, and whether the schema of this policy's output fits what is registered."""
    if kafka.registry is None:
        return []
    question = "schema registry"
    try:
        messages = Messages(schema)
        output = messages.output()
        if output is None or messages.registry is None:
            return [Finding(question, True, "it answers; the output is plain JSON")]
        broken = messages.breaks()
    except StreamAnonError as error:
        return [Finding(question, False, str(error), "correct kafka.registry, or ask again when it runs")]
    if broken is not None:
        return [Finding(question, False, f"the output's schema would break {broken[0]}: {broken[1]}", REMEDY)]
    return [Finding(question, True, f"it answers; the output's schema fits {output.subject}")]


def ledger_findings(kafka: KafkaSettings, schema: Schema) -> list[Finding]:
    """Yield one line for all good partitions, and one for each that would be quarantined or cannot be read."""
    transport = transport_of(kafka, "doctor")
    try:
        facts, bounds = transport.facts(kafka.input), transport.bounds(kafka.input)
        witness = Witness(transport, kafka.output, MarkSeal.of(schema.keys.ledger))
        used = witness.look_anew()
        every = set(range(facts.partitions))
        ledgers, until = transport.ledgers(every), time.monotonic() + LONGEST_TRANSACTION
        while len(ledgers) < len(every) and time.monotonic() < until:
            ledgers |= transport.ledgers(every - set(ledgers))
        store, fingerprint = store_of(transport, kafka.ledger, schema.keys.ledger), fingerprint_of(schema)
        try:
            store.check(facts.partitions)
        except StreamAnonError as error:
            found, _, remedy = str(error).partition(": ")
            return [Finding("ledger topic", False, found, remedy)]
        lacking = store.lacking(facts.partitions)
        restorer = Restorer(store, fingerprint, facts, kafka.group, bounds, used, None, lacking)
        try:
            restorer.refuse_others(ledgers)
        except OtherPolicyError as error:
            found, _, remedy = str(error).partition(": ")
            return [Finding("policy of the group", False, found, remedy)]
        bad = [
            Finding(f"ledger of partition {number}", False, "an open transaction holds it", STAYS_OPEN)
            for number in sorted(every - set(ledgers))
        ]
        beginnings: dict[int, Beginning] = {}
        codes: dict[int, str] = {}
        for number, committed in ledgers.items():
            try:
                beginnings[number] = restorer.restore(number, committed, ledgers)
            except QuarantineError as error:
                codes[number] = error.code
        with suppress(AbortableError):  # workers are publishing: they looked themselves when they began
            codes |= witness.rolled_back(beginnings, restorer)[0]
        for number, code in sorted(codes.items()):
            bad.append(Finding(f"ledger of partition {number}", False, code, REMEDIES[code]))
        return bad or [Finding("ledgers", True, f"{len(ledgers)} of {facts.partitions} partition(s) can be restored")]
    finally:
        transport.close()
