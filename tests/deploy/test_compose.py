"""docker-compose.yml and the image: valid, and saying the same as the policy, the program and each other."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from monitoring import ROOT, yaml

from stream_anon import demo
from stream_anon.cli import app
from stream_anon.kafka.local_broker.broker import KAFKA
from stream_anon.kafka.local_broker.registry import VERSION as REGISTRY
from stream_anon.policy.reading.scalars import substitute

COMPOSE = ROOT / "docker-compose.yml"
FILE: dict[str, Any] = yaml(COMPOSE)
SERVICES = FILE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "stream-anon"}
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
POLICY = ROOT / "deploy/policy.yaml"


def test_it_is_valid() -> None:
    """By the schema of the specification, and by compose itself where it is installed."""
    commands = [[sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]]
    docker = shutil.which("docker")
    if docker and subprocess.run([docker, "compose", "version"], capture_output=True).returncode == 0:
        commands.append([docker, "compose", "-f", str(COMPOSE), "config", "--quiet"])
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_file_it_mounts_is_there() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            assert (ROOT / volume.split(":")[0]).exists(), volume
        if "build" in service:
            assert (ROOT / service["build"]["dockerfile"]).exists()


def test_images_of_others_are_pinned_and_kafka_is_the_one_tested() -> None:
    images = {name: service["image"] for name, service in SERVICES.items() if name not in OURS}
    assert all(re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", image) for image in images.values()), images
    assert images["kafka"].split(":")[1] == KAFKA.split(":")[2]
    assert images["registry"].split(":")[1] == REGISTRY


def test_our_services_give_the_policy_what_it_asks_for() -> None:
    asked = set(re.findall(r"\$\{(\w+)\}", POLICY.read_text()))
    for service in OURS.values():
        assert set(service["environment"]) == asked
        assert service["volumes"] == [f"./deploy/policy.yaml:{service['command'][2]}:ro"]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
    listener = SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert f"PLAINTEXT://{OURS['worker']['environment']['KAFKA_BOOTSTRAP']}" in listener


def test_our_services_call_commands_and_options_that_exist() -> None:
    from typer.main import get_command

    group: Any = get_command(app)
    called = {service["command"][0] for service in OURS.values()}
    assert called == {"topics", "feed", "run"}
    for service in [*OURS.values(), {"command": _instruction("CMD")}]:
        command = group.get_command(None, service["command"][0])
        options = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in service["command"] if word.startswith("--")} <= options


def test_the_policy_is_the_demos_on_kafka() -> None:
    """So that `feed --demo` makes records it understands."""
    ours, theirs = yaml(POLICY), yaml(Path(demo.__file__).with_name("admissions.yaml"))
    del ours["kafka"], ours["secret"]
    assert ours == theirs
    assert substitute(yaml(POLICY)["kafka"]["bootstrap"], {"KAFKA_BOOTSTRAP": "k:1"}).text == "k:1"


def test_the_parts_find_each_other() -> None:
    (scrape,) = yaml(ROOT / "deploy/prometheus/prometheus.yml")["scrape_configs"]
    (found,) = scrape["dns_sd_configs"]
    assert found["names"] == ["worker"]
    assert found["port"] == int(_words("EXPOSE"))
    (source,) = yaml(ROOT / "deploy/grafana/provisioning/datasources/prometheus.yml")["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml(ROOT / "deploy/grafana/provisioning/dashboards/stream-anon.yml")["providers"]
    mounted = [volume.split(":")[1] for volume in SERVICES["grafana"]["volumes"]]
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home in mounted
    assert Path(home).parent == Path(provider["options"]["path"])


def test_the_image_is_not_root_and_says_when_it_is_well() -> None:
    assert _words("USER") == "10001:10001"
    assert "/readyz" in DOCKERFILE
    assert f":{_words('EXPOSE')}/readyz" in DOCKERFILE
    assert _words("VOLUME") in DOCKERFILE.split("NUMBA_CACHE_DIR=")[1]
    ignored = (ROOT / ".dockerignore").read_text().split()
    for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE):
        for source in line.split():
            assert (ROOT / source).exists()
            assert f"!{source}" in ignored


def _words(instruction: str) -> str:
    return re.findall(rf"^{instruction} (.*)$", DOCKERFILE, re.MULTILINE)[-1]


def _instruction(name: str) -> list[str]:
    return re.findall(r'"([^"]*)"', _words(name))
