"""A real Prometheus on the files of deploy/prometheus, in a hurry: minutes are seconds, thresholds are within reach."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from stream_anon.kafka.local_broker.broker import free_port

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/prometheus/rules.yml"
HURRY = [
    (r"\[1[05]m\]", "[20s]"),
    (r"\bfor: \d+m", "for: 1s"),
    (r"offset_metadata_bytes\) > 3000", "offset_metadata_bytes) > 150"),
    (r"lag_records\) > 1000", "lag_records) > 50"),
]


def yaml(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path)


def tool(name: str) -> str:
    """The path of a program; the test is skipped without it, and fails where everything is required."""
    found = shutil.which(name)
    if found is None:
        if os.environ.get("STREAM_ANON_REQUIRE_ALL"):
            raise AssertionError(f"{name} is required: see .ci/packages")
        pytest.skip(f"{name} is not installed: see .ci/packages")
    return found


def hurried_rules() -> str:
    text = RULES.read_text()
    for pattern, replacement in HURRY:
        text, count = re.subn(pattern, replacement, text)
        assert count, f"{pattern} is nowhere in the rules"
    return text


class Prometheus:
    """Scrapes `targets`, addresses by job, every second."""

    def __init__(self, folder: Path, targets: dict[str, str]) -> None:
        config = yaml(ROOT / "deploy/prometheus/prometheus.yml")
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        (scrape,) = config["scrape_configs"]
        del scrape["dns_sd_configs"]
        scrape["static_configs"] = [{"targets": [where], "labels": {"job": job}} for job, where in targets.items()]
        with (folder / "prometheus.yml").open("w") as file:
            YAML(typ="safe", pure=True).dump(config, file)
        (folder / "rules.yml").write_text(hurried_rules())
        self._address = f"127.0.0.1:{free_port()}"
        self._log = (folder / "prometheus.log").open("wb")
        options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        command = [tool("prometheus"), *options, f"--web.listen-address={self._address}"]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log)

    def ask(self, path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://{self._address}/api/v1/{path}?{query}", timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        found = self.ask("query", query=expression)["result"]
        return list(found)

    def firing(self) -> set[tuple[str, str]]:
        """Alerts that fire now, with the job they tell of."""
        try:
            alerts = self.ask("alerts")["alerts"]
        except OSError:  # it is still starting
            return set()
        return {(a["labels"]["alertname"], a["labels"]["job"]) for a in alerts if a["state"] == "firing"}

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        self._log.close()


def wait_for(
    condition: Callable[[], bool], what: str, told: Callable[[], str] = lambda: "", timeout: float = 150.0
) -> None:
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"{what} did not come about: {told()}"
        time.sleep(0.2)
