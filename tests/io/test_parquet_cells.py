"""What Parquet holds beyond JSON is read as JSON would hold it."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream_anon.cli import run
from stream_anon.formats.tables import read_parts

ROWS = 60


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    columns = {
        "seen": [datetime(2026, 3, 1 + i % 10, i % 4, tzinfo=UTC) for i in range(ROWS)],
        "born": [date(1980 + i % 7, 1 + i % 3, 3) for i in range(ROWS)],
        "amount": [Decimal(i % 30) / 4 for i in range(ROWS)],
    }
    pq.write_table(pa.table(columns), "t.parquet")
    return Path("t.parquet")


def test_cells(table: Path) -> None:
    [part] = read_parts(table)
    assert part.payloads[1] == {"seen": "2026-03-02T01:00:00+00:00", "born": "1981-02-03", "amount": 0.25}


def test_from_init_to_preview(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "t.parquet"]) == 0
    capsys.readouterr()
    assert run(["preview", "t.parquet", "-p", "policy.yaml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["published"] == ROWS
    assert set(found["loss_per_attribute"]) == {"seen", "born", "amount"}
