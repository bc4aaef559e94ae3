"""What a worker tells: metrics over HTTP, health, logs; and what it never tells."""

from __future__ import annotations

import io
import json
import logging
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from stream_anon.observe.logs import log_to
from stream_anon.observe.metrics import Metrics
from stream_anon.observe.server import StatusServer


@pytest.fixture
def quiet_root() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers, root.level
    yield
    root.handlers, root.level = before


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_status_port() -> None:
    metrics = Metrics("trial", "abcdef", 2.0, ["age"])
    state = {"live": True, "ready": False}
    server = StatusServer(metrics.registry, lambda: state["live"], lambda: state["ready"]).start()
    try:
        assert get(server.port, "/livez")[0] == 200
        assert get(server.port, "/readyz")[0] == 503
        state["ready"] = True
        assert get(server.port, "/readyz")[0] == 200
        state["live"] = False
        assert get(server.port, "/livez")[0] == 503
        assert get(server.port, "/elsewhere")[0] == 404
        text = get(server.port, "/metrics")[1]
        for name in ("deadlines_missed_total 0.0", "privacy_violations_total 0.0", "policy_info", "build_info"):
            assert name in text
    finally:
        server.close()


def test_every_metric_is_documented() -> None:
    documented = (Path(__file__).parents[2] / "docs" / "kafka.md").read_text().split("## Metrics to watch")[1]
    for metric in Metrics("trial", "abcdef", 2.0, ["age"]).registry.collect():
        name = metric.name.removeprefix("stream_anon_")
        name += {"counter": "_total", "info": "_info"}.get(metric.type, "")
        assert f"`{name}" in documented, name


def test_what_waits_is_told() -> None:
    metrics = Metrics("trial", "abcdef", 2.0, ["age"])
    metrics.buffered(7, 1.5, 3)
    value = metrics.registry.get_sample_value
    assert value("stream_anon_buffered_records") == 7
    assert value("stream_anon_oldest_record_age_seconds") == 1.5
    assert value("stream_anon_open_clusters") == 3


def test_many_observations_at_once_are_as_one_by_one() -> None:
    metrics = Metrics("trial", "abcdef", 2.0, ["age"])
    delays = np.array([0.1, 1.0, 2.0, 2.0001, 99.0])
    metrics.published(["ready", "deadline"], [2, 3], delays, np.array([np.nan] * 5), np.array([[0.5], [0.7]]))
    value = metrics.registry.get_sample_value
    assert value("stream_anon_record_delay_seconds_count") == 5
    assert value("stream_anon_record_delay_seconds_bucket", {"le": "2.0"}) == 3
    assert value("stream_anon_record_delay_seconds_bucket", {"le": "+Inf"}) == 5
    assert value("stream_anon_record_age_seconds_count") == 0
    assert value("stream_anon_groups_published_total", {"reason": "deadline"}) == 1
    assert value("stream_anon_information_loss_ratio_sum", {"attribute": "age"}) == 1.2


def test_logs_hold_declared_fields_only(quiet_root: None) -> None:
    out = io.StringIO()
    log_to(out)
    own = logging.getLogger("stream_anon.worker")
    own.error("quarantined", extra={"partition": 3, "code": "empty", "payload": "SECRET"})
    logging.getLogger("kafka.client").error("failed on %s", b"SECRET")
    try:
        raise ValueError("SECRET")
    except ValueError:
        own.exception("internal error")
    assert "SECRET" not in out.getvalue()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert lines[0]["partition"] == 3
    assert lines[0]["event"] == "quarantined"
    assert lines[2]["error"] == "ValueError"


def test_an_answer_of_no_says_why() -> None:
    words = {"why": "partition 3 is quarantined as lost: restore it"}
    server = StatusServer(CollectorRegistry(), lambda: True, lambda: not words["why"], why=lambda: words["why"]).start()
    try:
        assert get(server.port, "/readyz") == (503, "no\npartition 3 is quarantined as lost: restore it\n")
        words["why"] = ""
        assert get(server.port, "/readyz") == (200, "ok\n")
    finally:
        server.close()


def test_a_long_round_is_told_while_it_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics("trial", "abcdef", 2.0, ["age"])
    metrics.alive()
    later = metrics.last_round + 42.0
    monkeypatch.setattr("stream_anon.observe.metrics.time.monotonic", lambda: later)
    assert metrics.registry.get_sample_value("stream_anon_round_age_seconds") == pytest.approx(42.0)


def test_a_partition_that_left_is_told_of_by_its_owner_alone() -> None:
    metrics = Metrics("trial", "abcdef", 2.0, ["age"])
    metrics.lag(3, 70)
    metrics.ledger(3, 90, 2_000)
    metrics.left(3)
    metrics.left(4)
    text = generate_latest(metrics.registry).decode()
    assert 'partition="3"' not in text
    assert "stream_anon_delay_bound_seconds 2.0" in text


def test_waiting_until_the_metrics_were_read() -> None:
    server = StatusServer(CollectorRegistry(), lambda: True, lambda: True).start()
    try:
        assert not server.await_reading(0.01)
        with ThreadPoolExecutor(1) as run_in_background:
            seen = run_in_background.submit(server.await_reading, 30)
            while not seen.done():
                assert get(server.port, "/livez")[0] == 200
                get(server.port, "/metrics")
            assert seen.result()
    finally:
        server.close()
