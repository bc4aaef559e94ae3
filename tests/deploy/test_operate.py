"""docs/operate.md: every alert has its answer, and the access lists it gives are all a worker needs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourcePattern, ResourceType
from monitoring import ROOT, RULES, wait_for, yaml

from stream_anon.demo import admissions
from stream_anon.kafka.clients.kafka_python.feed import KafkaFeed
from stream_anon.kafka.clients.kafka_python.topics import KafkaTopics, create_topics
from stream_anon.kafka.local_broker.broker import LocalBroker

GUIDE = (ROOT / "docs/operate.md").read_text()
RULE_LIST = [rule for group in yaml(RULES)["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("rule", RULE_LIST, ids=[rule["alert"] for rule in RULE_LIST])
def test_an_alert_leads_to_what_to_do(rule: dict[str, object]) -> None:
    annotations = rule["annotations"]
    assert isinstance(annotations, dict)
    page, anchor = annotations["runbook_url"].split("#")
    assert (ROOT / page).exists()
    assert anchor == str(rule["alert"]).lower()
    section = GUIDE.split(f"### {rule['alert']}\n")[1].split("\n##")[0]
    assert section.startswith(f"*{rule['labels']['severity']}.*")  # type: ignore[index]


def test_every_answer_belongs_to_an_alert() -> None:
    assert re.findall(r"^### (\w+)$", GUIDE, re.MULTILINE) == [rule["alert"] for rule in RULE_LIST]


def access_lists(principal: str, names: dict[str, str]) -> list[ACL]:
    """The kafka-acls.sh commands of the guide, for other names than those of deploy/policy.yaml."""
    found = []
    for line in re.findall(r"^kafka-acls\.sh --add (.*)$", GUIDE, re.MULTILINE):
        words = re.sub(r"admissions(-anonymizer|-anonymous|-rejected)?", lambda name: names[name[0]], line).split()
        options = [(word.removeprefix("--"), words[i + 1]) for i, word in enumerate(words) if word.startswith("--")]
        ((kind, name),) = [option for option in options if option[0] in ("topic", "group", "transactional-id")]
        pattern = ResourcePattern(
            ResourceType[kind.replace("-", "_").upper()],
            name,
            ACLResourcePatternType[dict(options).get("resource-pattern-type", "literal").upper()],
        )
        for operation in [value for key, value in options if key == "operation"]:
            word = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()
            found.append(ACL(f"User:{principal}", "*", ACLOperation[word], ACLPermissionType.ALLOW, pattern))
    return found


def test_the_access_lists_are_all_a_worker_needs(local_broker: LocalBroker, name: str, tmp_path: Path) -> None:
    """The policy of the Kubernetes manifests, over TLS as a user who may do nothing else."""
    kafka = yaml(ROOT / "deploy/policy.yaml")["kafka"]
    names = {kafka[part]: f"{name}-{part}" for part in ("group", "input", "output", "dead_letter")}
    text = (ROOT / "deploy/kubernetes/base/policy.yaml").read_text()
    for part in names.values():
        text = re.sub(rf"(  {part.removeprefix(f'{name}-')}: ).*", rf"\g<1>{part}", text)
    text = text.replace("SCRAM-SHA-512", "SCRAM-SHA-256").replace("/etc/kafka-ca/ca.crt", str(local_broker.certificate))
    policy = tmp_path / "policy.yaml"
    policy.write_text(text)
    login = {"KAFKA_USERNAME": local_broker.guest, "KAFKA_PASSWORD": local_broker.password}
    environment = (
        os.environ
        | login
        | {
            "KAFKA_BOOTSTRAP": local_broker.sasl_bootstrap,
            "STREAM_ANON_SECRET": "a secret only for the tests, of no value",
        }
    )

    create_topics(local_broker.bootstrap, {names[kafka[part]]: 1 for part in ("input", "output", "dead_letter")})
    admin = KafkaAdminClient(bootstrap_servers=local_broker.bootstrap)
    admin.create_acls(access_lists(local_broker.guest, names))
    admin.close()
    with closing(KafkaFeed(local_broker.bootstrap, names[kafka["input"]], {})) as feed:
        feed.send([*islice(admissions(1), 200), b"no JSON"])
        feed.flush()
    address = {"bootstrap_servers": local_broker.bootstrap}
    reader = KafkaTopics(address, address, names[kafka["group"]], "")
    command = [sys.executable, "-m", "stream_anon", "run", "-p", str(policy), "--status-port", "0"]
    worker = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    try:
        for part in ("output", "dead_letter"):
            topic = names[kafka[part]]
            wait_for(lambda topic=topic: worker.poll() is not None or reader.bounds(topic)[0][1] > 0, part)
        worker.terminate()
        assert worker.wait(30) == 0, worker.stderr.read() if worker.stderr else ""
    finally:
        worker.kill()
        reader.close()
