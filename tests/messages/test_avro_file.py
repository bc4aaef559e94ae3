"""Tables in Avro object files: read, written, read again by others and by the auditor."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import fastavro
import pytest

import stream_anon
from stream_anon.formats.avro_file import AvroFile
from stream_anon.formats.format import TableError

POLICY: dict[str, Any] = {
    "version": 1,
    "name": "visits",
    "subject": "who",
    "secret": "a-secret-that-only-serves-these-tests",
    "attributes": {
        "who": {"role": "identifier"},
        "birth-year": {
            "role": "quasi_identifier",
            "type": "integer",
            "missing": "leaf",
            "hierarchy": {"kind": "interval", "range": [1900, 2030], "snap": [5, 10]},
        },
        "home.zip": {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "prefix", "length": 3}},
        "ill": {"role": "sensitive"},
        "ward": {"role": "insensitive", "list": True},
    },
    "privacy": [{"model": "k_anonymity", "k": 4}],
}


def test_what_is_published_is_read_by_others_and_by_the_auditor(tmp_path: Path) -> None:
    raw, out, policy = tmp_path / "raw.jsonl", tmp_path / "out.avro", tmp_path / "policy.yaml"
    rows = [
        {
            "who": f"p{n}",
            "birth-year": None if n % 9 == 0 else 1930 + n % 70,
            "home": {"zip": f"{n % 4}{n % 3}0"},
            "ill": "abc"[n % 3],
            "ward": [None, 7, 1.5, True, "x", ["x", 2, None]][n % 6],
        }
        for n in range(200)
    ]
    raw.write_text("".join(json.dumps(row) + "\n" for row in rows))
    policy.write_text(json.dumps(POLICY))
    for arguments in (["anonymize", raw, "-p", policy, "-o", out], ["audit", out, "-p", policy, "--raw", raw]):
        done = subprocess.run(
            [sys.executable, "-m", "stream_anon", *map(str, arguments)], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
    with out.open("rb") as file:
        published = list(fastavro.reader(file))
    assert len(published) == 200
    assert min(Counter(record["_anon"]["group"] for record in published).values()) >= 4
    wards = Counter(json.dumps(record["ward"]) for record in published)
    assert wards == Counter(json.dumps(row["ward"]) for row in rows)
    assert {type(record["birth_year"]) for record in published} <= {dict, type(None)}
    assert stream_anon.audit(str(out), stream_anon.load_policy(policy)).passed


def test_another_file_is_no_avro_file(tmp_path: Path) -> None:
    path = tmp_path / "table.avro"
    for content in (b"", b"no Avro at all", b"Obj\x01"):
        path.write_bytes(content)
        with pytest.raises(TableError, match="not an Avro file"):
            list(AvroFile().read(path, 10))
