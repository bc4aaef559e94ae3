"""The image is built and run as written, with this machine's Python: every RUN, the entry, the probes, the services.

`make image` fetches and compiles for it, too.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from image import DOCKERFILE, Image, instructions, last, stages
from monitoring import ROOT, wait_for, yaml
from packaging.requirements import Requirement
from packaging.version import Version

from stream_anon.kafka.local_broker.broker import free_port

COMPOSE = yaml(ROOT / "docker-compose.yml")["services"]
POD = yaml(ROOT / "deploy/kubernetes/base/statefulset.yaml")["spec"]["template"]["spec"]
SECRET = "a secret only for the tests, of no value"


def test_the_image_is_built_and_run_as_written(tmp_path: Path, bootstrap: str, name: str) -> None:
    """One test, because the build is dear: it fetches and compiles what is locked, if told to."""
    image = Image(tmp_path, whole="STREAM_ANON_WHOLE_IMAGE" in os.environ)
    image.build(stages()[0])
    image.build([(each, words) for each, words in stages()[1] if each in ("ENV", "COPY")])
    every_step_was_carried_out(image)
    a_pod_gets_its_kernels(image)
    the_commands_work(image, bootstrap, name)


def get(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def every_step_was_carried_out(image: Image) -> None:
    written = [json.loads(words) for name, words in stages()[0] if name == "RUN"]
    assert image.done == written
    assert sum(command[0] in ("python", "pip", "stream-anon") for command in written) >= 4
    others = [json.loads(words)[0] for name, words in stages()[1] if name == "RUN"]
    assert others == ["useradd"], "what is new here has to be carried out by this test"
    cache = image.folder / "var/cache/stream-anon"
    if not image.whole:
        cache.mkdir(parents=True)
        (cache / "made-up.nbc").touch()
    assert list(cache.rglob("*.nbc")), "the image brings its kernels along"


def the_commands_work(image: Image, bootstrap: str, name: str) -> None:
    """Those of the image itself, of compose and of Kubernetes, with the probes of all three."""
    policy = image.folder / "etc/stream-anon/policy.yaml"
    policy.parent.mkdir(parents=True, exist_ok=True)
    policy.write_text((ROOT / "deploy/policy.yaml").read_text().replace("admissions", name))
    entry, port, exposed = json.loads(last("ENTRYPOINT")), free_port(), last("EXPOSE")
    told = {"KAFKA_BOOTSTRAP": bootstrap, "STREAM_ANON_SECRET": SECRET, "POD_NAME": f"{name}-0"}
    assert image.start([*entry, *COMPOSE["topics"]["command"]], **told).wait(120) == 0
    feed = image.start([*entry, *COMPOSE["producer"]["command"], "--rate", "20"], **told)
    try:
        ways = {"image": json.loads(last("CMD")), "compose": COMPOSE["worker"]["command"]}
        (container,) = POD["containers"]
        ways["kubernetes"] = [re.sub(r"\$\((\w+)\)", lambda known: told[known[1]], word) for word in container["args"]]
        for way, command in ways.items():
            worker = image.start([*entry, *command, "--status-port", str(port)], **told)
            try:
                wait_for(lambda worker=worker: worker.poll() is not None or get(port, "/readyz") == 200, way)
                assert worker.poll() is None, way
                if way == "kubernetes":
                    assert {"name": "metrics", "containerPort": int(exposed)} in container["ports"]
                    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                        assert container[probe]["httpGet"]["port"] == "metrics"
                        assert get(port, container[probe]["httpGet"]["path"]) == 200
                health = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
                image.run([word.replace(f":{exposed}/", f":{port}/") for word in health])
            finally:
                worker.terminate()
                assert worker.wait(60) == 0, way
        assert feed.poll() is None, "the producer goes on"
    finally:
        feed.terminate()
        feed.wait(60)


def a_pod_gets_its_kernels(image: Image) -> None:
    (step,) = POD["initContainers"]
    (image.folder / "kernels").mkdir(exist_ok=True)
    image.run(step["command"])
    assert list((image.folder / "kernels").rglob("*.nbc"))


def test_every_instruction_that_runs_something_is_a_list() -> None:
    """A shell would read it in its own way, and no test could carry it out as it stands."""
    for name, words in instructions(DOCKERFILE):
        if name in ("RUN", "CMD", "ENTRYPOINT"):
            assert isinstance(json.loads(words), list), words


# what is locked


def locked(file: str) -> dict[str, list[Version]]:
    found: dict[str, list[Version]] = {}
    for package, version in re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / "deploy" / file).read_text(), re.MULTILINE):
        found.setdefault(re.sub(r"[-_.]+", "-", package).lower(), []).append(Version(version))
    return found


def test_the_lock_matches_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    wanted = list(project["project"]["dependencies"])
    for name in ("fast", "kafka", "speed", "avro", "protobuf", "zstd"):
        wanted += extras[name]
    for file, requirements in (("requirements.lock", wanted), ("build.lock", project["build-system"]["requires"])):
        known = locked(file)
        for requirement in map(Requirement, requirements):
            versions = known.get(re.sub(r"[-_.]+", "-", requirement.name).lower(), [])
            assert versions, f"{requirement.name} is not in {file}: make lock"
            for version in versions:
                assert requirement.specifier.contains(version), f"{file} has {requirement.name} {version}: make lock"


@pytest.mark.parametrize("file", ["requirements.lock", "build.lock"])
def test_the_lock_has_hashes_and_no_address(file: str) -> None:
    text = (ROOT / "deploy" / file).read_text()
    entries = re.split(r"\n(?=[\w.-]+==)", text)
    assert all("--hash=sha256:" in entry for entry in entries)
    assert not re.search(r"://|--(extra-)?index|--find-links|--trusted", text)
    assert os.fspath(ROOT) not in text
