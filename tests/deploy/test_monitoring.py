"""A real Prometheus, real workers, a real broker: every panel shows something, and every fault raises its alarm."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from faults import HOLD, SOON, Fault, Slow, Trickle, one_person, partly_broken, people
from monitoring import ROOT, RULES, Prometheus, tool, wait_for, yaml

from stream_anon.kafka.clients.kafka_python.topics import create_topics
from stream_anon.kafka.local_broker.broker import free_port

BOARD = json.loads((ROOT / "deploy/grafana/stream-anon.json").read_text())
PANELS = {
    f"{panel['title']} {target['refId']}": target["expr"]
    for panel in BOARD["panels"]
    for target in panel.get("targets", [])
}
ALERTS = [rule["alert"] for group in yaml(RULES)["groups"] for rule in group["rules"]]
FIRES_FOR = {  # which worker of the scene has the fault
    "StreamAnonPrivacyViolation": "careless",
    "StreamAnonDeadlineMissed": "late",
    "StreamAnonPartitionQuarantined": "wiped",
    "StreamAnonWorkerDown": "stream-anon",
    "StreamAnonLagGrowing": "held",
    "StreamAnonLedgerNearLimit": "late",  # what was announced stays there while the transaction hangs
    "StreamAnonSuppressionRising": "alone",
    "StreamAnonRecordsRejected": "broken",
    "StreamAnonGroupsWithdrawn": "gone",
}
SERVICES = yaml(ROOT / "docker-compose.yml")["services"]


class Scene:
    """The services of docker-compose.yml without Docker, a worker per fault, and a Prometheus that watches them."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self._bootstrap, self._folder = bootstrap, folder
        self._log = (folder / "services.log").open("ab")
        self._endings: list[Callable[[], object]] = []
        run = uuid4().hex[:6]
        port, careless_port = free_port(), free_port()
        topics = self.service("topics")
        self.faults = {
            job: Fault(bootstrap, f"{job}-{run}", folder) for job in set(FIRES_FOR.values()) - {"stream-anon"}
        }
        careless = self.faults.pop("careless")
        create_topics(bootstrap, {topic: 1 for fault in [*self.faults.values(), careless] for topic in fault.topics})
        self._prepare()
        assert topics.wait(120) == 0
        self.producer = self.service("producer")
        self.worker = self.service("worker", "--status-port", str(port))
        command = ["run", "-p", str(careless.policy()), "--status-port", str(careless_port)]
        self.careless = self.start([sys.executable, str(Path(__file__).with_name("careless.py")), *command])
        targets = {name: fault.address for name, fault in self.faults.items()}
        targets |= {"stream-anon": f"127.0.0.1:{port}", "careless": f"127.0.0.1:{careless_port}"}
        self.prometheus = Prometheus(folder, targets)
        self._endings.append(self.prometheus.close)
        content = {fault.input: people for job, fault in self.faults.items() if job != "late"} | {
            careless.input: people
        }
        content |= {self.faults[name].input: one_person for name in ("held", "alone")}
        content |= {self.faults["broken"].input: partly_broken}
        self._endings.append(Trickle(bootstrap, content).stop)
        crowd = {self.faults["late"].input: people}  # announced at once, several times the hurried threshold
        self._endings.append(Trickle(bootstrap, crowd, at_a_time=20).stop)

    def _prepare(self) -> None:
        """Faults that need a past get one; then every faulty worker starts."""
        faults = self.faults
        self._endings += [fault.stop for fault in faults.values()]
        faults["late"].start(faults["late"].policy(stream=SOON), Slow)
        faults["held"].start(faults["held"].policy(stream=HOLD))
        faults["wiped"].commit_without_a_ledger()
        for name in ("wiped", "alone", "broken"):
            faults[name].start(faults[name].policy())
        trickle = Trickle(self._bootstrap, {faults["gone"].input: people})
        faults["gone"].announce_and_leave(faults["gone"].policy())
        trickle.stop()
        faults["gone"].delete_the_input()
        faults["gone"].start(faults["gone"].policy())

    def service(self, name: str, *more: str) -> subprocess.Popen[bytes]:
        """The command of a service of the compose file, with its environment; only addresses differ."""
        service = SERVICES[name]
        mounted = {inside: ROOT / outside for outside, inside, *_ in (v.split(":") for v in service["volumes"])}
        words = [str(mounted.get(word, word)) for word in service["command"]]
        environment = service["environment"] | {"KAFKA_BOOTSTRAP": self._bootstrap}
        environment["STREAM_ANON_SECRET"] = re.sub(r"\$\{\w+:-(.*)\}", r"\1", environment["STREAM_ANON_SECRET"])
        return self.start([sys.executable, "-m", "stream_anon", *words, *more], environment)

    def start(self, command: list[str], environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command, env=os.environ | (environment or {}), stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )
        self._endings.append(lambda: process.poll() is not None or process.kill())
        return process

    def close(self) -> None:
        for end in reversed(self._endings):
            end()
        self._log.close()


@pytest.fixture
def scene(bootstrap: str, tmp_path: Path) -> Iterator[Scene]:
    tool("prometheus")
    made = Scene(bootstrap, tmp_path)
    yield made
    made.close()


def expression(text: str) -> str:
    """As Grafana would ask, for all jobs."""
    for variable, value in {"$__rate_interval": "20s", "$__range": "1m", "$job": ".*"}.items():
        text = text.replace(variable, value)
    return text


def shows(scene: Scene, panel: str) -> bool:
    """Whether a panel's expression has values, all of them numbers."""
    try:
        found = scene.prometheus.query(expression(panel))
    except OSError:  # it is still starting
        return False
    return bool(found) and all(sample["value"][1] != "NaN" for sample in found)


def test_every_panel_shows_something_and_every_fault_raises_its_alarm(scene: Scene) -> None:
    """One test, because the scene is dear: what has not come about in time is named in the end."""
    empty, silent = dict(PANELS), {(alert, job) for alert, job in FIRES_FOR.items() if alert != "StreamAnonWorkerDown"}

    def over() -> bool:
        for panel in [panel for panel in empty if shows(scene, empty[panel])]:
            del empty[panel]
        silent.difference_update(scene.prometheus.firing())
        return not empty and not silent

    wait_for(over, "panels and alarms", lambda: f"empty panels {sorted(empty)}, silent alarms {sorted(silent)}")
    assert scene.careless.wait(90) == 70, "a violation ends the worker, once it was seen"
    # The healthy worker has no fault; whether it is in time depends on the machine.
    faults = {"PrivacyViolation", "PartitionQuarantined", "RecordsRejected", "GroupsWithdrawn"}
    firing = {alert.removeprefix("StreamAnon") for alert, job in scene.prometheus.firing() if job == "stream-anon"}
    assert not firing & faults
    assert scene.worker.poll() is None
    scene.worker.kill()
    wait_for(lambda: ("StreamAnonWorkerDown", "stream-anon") in scene.prometheus.firing(), "WorkerDown")


def test_every_alert_has_a_fault() -> None:
    assert set(FIRES_FOR) == set(ALERTS)


def test_the_rules_by_promtool() -> None:
    promtool = tool("promtool")
    for arguments in (["check", "rules", str(RULES)], ["test", "rules", str(RULES.with_name("rules_test.yml"))]):
        done = subprocess.run([promtool, *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    tested = RULES.with_name("rules_test.yml").read_text()
    for alert in ALERTS:
        assert re.search(rf'alertname="{alert}".*exp_samples: \[{{value: 1}}\]', tested), alert
