"""The manifests: valid against the API's schemas, locked down, and saying the same as compose, policy and rules."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from monitoring import ROOT, RULES, yaml
from ruamel.yaml import YAML

from stream_anon import __version__
from stream_anon.worker.settings import WorkerSettings

FOLDER = ROOT / "deploy/kubernetes"
OVERLAYS = ["base", "monitored", "keda"]
CUSTOM = {"ServiceMonitor", "PrometheusRule", "ScaledObject"}  # of operators: the API's own schemas do not know them
API = "1.30"
COMPOSE = yaml(ROOT / "docker-compose.yml")["services"]


@cache
def built(overlay: str) -> list[dict[str, Any]]:
    """As kustomize builds it; where kubectl is not installed, the files it would build from."""
    if shutil.which("kubectl"):
        done = subprocess.run(["kubectl", "kustomize", str(FOLDER / overlay)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return list(YAML(typ="safe", pure=True).load_all(done.stdout))
    return gathered(FOLDER / overlay)


def gathered(folder: Path) -> list[dict[str, Any]]:
    found = []
    for name in yaml(folder / "kustomization.yaml")["resources"]:
        path = (folder / name).resolve()
        found += gathered(path) if path.is_dir() else [yaml(path)]
    return found


def one(kind: str, overlay: str = "base") -> dict[str, Any]:
    (found,) = [resource for resource in built(overlay) if resource["kind"] == kind]
    return found


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_resource_is_valid(overlay: str) -> None:
    for resource in [*built(overlay), *gathered(FOLDER / overlay)]:
        if resource["kind"] not in CUSTOM:
            kubernetes_validate.validate(resource, API, strict=True)
        assert resource["apiVersion"]
        assert resource["metadata"]["name"]


def test_every_file_is_in_some_overlay() -> None:
    named = {"kustomization.yaml", "policy.yaml"}
    for overlay in OVERLAYS:
        named |= set(yaml(FOLDER / overlay / "kustomization.yaml")["resources"])
    assert {file.name for file in FOLDER.rglob("*.yaml")} == {name for name in named if name.endswith("yaml")}


def pod() -> dict[str, Any]:
    spec: dict[str, Any] = one("StatefulSet")["spec"]["template"]["spec"]
    return spec


def worker() -> dict[str, Any]:
    (container,) = pod()["containers"]
    return dict(container)


def test_pods_are_locked_down() -> None:
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert pod()["automountServiceAccountToken"] is False
    image = re.findall(r"^USER (\d+):(\d+)$", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE)[0]
    assert (pod()["securityContext"]["runAsUser"], pod()["securityContext"]["runAsGroup"]) == tuple(map(int, image))
    for container in [worker(), *pod()["initContainers"]]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "memory" in container["resources"]["limits"]


def test_a_worker_is_started_as_in_compose_with_a_name_of_its_own() -> None:
    assert worker()["args"] == [*COMPOSE["worker"]["command"], "--instance", "$(POD_NAME)"]
    (name,) = [variable for variable in worker()["env"] if variable["name"] == "POD_NAME"]
    assert name["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}


def test_everything_the_policy_asks_for_comes_from_the_secret() -> None:
    asked = set(re.findall(r"\$\{(\w+)\}", (FOLDER / "base/policy.yaml").read_text()))
    given = {v["name"]: v["valueFrom"]["secretKeyRef"] for v in worker()["env"] if v["name"] != "POD_NAME"}
    assert set(given) == asked
    assert {reference["name"] for reference in given.values()} == {"stream-anon"}
    documented = (ROOT / "docs/operate.md").read_text()
    for reference in given.values():
        assert f"--from-literal={reference['key']}=" in documented


def test_the_policy_differs_from_compose_in_the_connection_only() -> None:
    here, there = yaml(FOLDER / "base/policy.yaml"), yaml(ROOT / "deploy/policy.yaml")
    options = here["kafka"].pop("options")
    assert here == there
    assert options["security.protocol"] == "SASL_SSL"
    mounts = {mount["name"]: mount["mountPath"] for mount in worker()["volumeMounts"]}
    assert options["ssl.ca.location"] == f"{mounts['kafka-ca']}/ca.crt"
    assert f"{mounts['policy']}/policy.yaml" in worker()["args"]


def test_ports_probes_and_caches_are_those_of_the_image() -> None:
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    (port,) = worker()["ports"]
    assert f"EXPOSE {port['containerPort']}" in dockerfile
    assert one("Service")["spec"]["ports"][0]["targetPort"] == port["name"]
    for probe, path in {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}.items():
        assert worker()[probe]["httpGet"] == {"path": path, "port": port["name"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in worker()["volumeMounts"]}
    assert f"VOLUME {mounts['kernels']}\n" in dockerfile
    (copy,) = pod()["initContainers"]
    assert copy["command"][-2:] == [f"{mounts['kernels']}/.", copy["volumeMounts"][0]["mountPath"]]


def test_a_pod_has_time_to_drain() -> None:
    drain = WorkerSettings("in", "out").drain_seconds
    assert pod()["terminationGracePeriodSeconds"] > 2 * drain
    assert COMPOSE["worker"]["stop_grace_period"] == f"{pod()['terminationGracePeriodSeconds']}s"


def test_only_prometheus_comes_in_and_only_kafka_is_reached() -> None:
    spec = one("NetworkPolicy")["spec"]
    assert set(spec["policyTypes"]) == {"Ingress", "Egress"}
    assert len(spec["ingress"]) == 1
    assert {port["port"] for rule in spec["egress"] for port in rule["ports"]} == {53, 9093}


def test_selectors_meet_their_pods() -> None:
    labels = one("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    assert one("Service")["spec"]["selector"] == labels
    for kind in ("StatefulSet", "PodDisruptionBudget"):
        assert one(kind)["spec"]["selector"] == {"matchLabels": labels}
    assert one("NetworkPolicy")["spec"]["podSelector"] == {"matchLabels": labels}
    assert yaml(FOLDER / "monitored/monitor.yaml")["spec"]["selector"] == {"matchLabels": labels}


def test_the_operators_rules_are_prometheus_own() -> None:
    assert yaml(FOLDER / "monitored/rules.yaml")["spec"]["groups"] == yaml(RULES)["groups"]


def test_workers_scale_by_a_metric_that_exists() -> None:
    spec = yaml(FOLDER / "keda/scaled.yaml")["spec"]
    assert spec["scaleTargetRef"] == {"kind": "StatefulSet", "name": one("StatefulSet")["metadata"]["name"]}
    (trigger,) = spec["triggers"]
    assert "stream_anon_consumer_lag_records" in trigger["metadata"]["query"]
    assert (
        f"stream-anon topics -p policy.yaml --partitions {spec['maxReplicaCount']}"
        in (ROOT / "docs/operate.md").read_text()
    )


def test_the_image_is_of_this_version() -> None:
    (image,) = yaml(FOLDER / "base/kustomization.yaml")["images"]
    assert image["newTag"] == __version__
