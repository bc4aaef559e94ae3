"""A record whose row is no whole number is not read as if it were one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from publishing import Published, people, publish


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return publish(tmp_path_factory.mktemp("clean"), "plain", "k", "mondrian", people(40, seed=5))


@pytest.mark.parametrize("number", ["00", "1" * 30, "-1", "1.5", '"0"', ""])
def test_a_row_that_is_no_number(tmp_path: Path, made: Published, number: str) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text(made.out.read_text().replace('"row":0', f'"row":{number}', 1))
    codes = {finding.code for finding in replace(made, out=out).audit().findings}
    assert codes & {"not-readable", "envelope"}
    assert "size" in codes


def test_the_others_are_read(made: Published) -> None:
    assert made.audit().passed
