"""What every algorithm publishes of the same made-up records, as digests; run as a program it writes them anew.

Whoever changes one of them on purpose says why in the commit: the same members, policy and secret must give the same
bytes, or a group that was announced before an upgrade cannot be published after it.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from itertools import islice
from pathlib import Path

import numpy as np

from stream_anon.batch import ALGORITHMS, partition
from stream_anon.batch.support import check
from stream_anon.core.encode import Encoder
from stream_anon.core.publish import encode_lines
from stream_anon.core.schema import Schema
from stream_anon.demo import admissions
from stream_anon.errors import Unsupported
from stream_anon.formats.csv_table import CsvWriter
from stream_anon.local.pipeline import Pipeline
from stream_anon.policy import load

STORED = Path(__file__).with_name("published.json")
POLICY = """
version: 1
name: golden
subject: patient_id
secret: a-secret-that-is-only-for-golden-files
attributes:
  patient_id: {role: identifier}
  birth_year: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [1915, 2026], snap: [5, 10]}}
  zip: {role: quasi_identifier, type: category, hierarchy: {kind: prefix, length: 5}}
  gender: {role: quasi_identifier, type: category, weight: 0.5, hierarchy: {kind: flat, values: [female, male, other]}}
  diagnosis: {role: sensitive}
  ward: {role: insensitive}
privacy:
  - {model: k_anonymity, k: 4}
  - MODEL
stream: {max_delay: {time: 5s, records: 300}}
algorithm: ALGORITHM
"""
STREAMS = {
    "cail": "{name: cail}",
    "cail standing": "{name: cail, clusters: standing}",
    "cail merge": "{name: cail, clusters: standing, completion: merge}",
    "castle": "{name: castle}",
    "castle reuse": "{name: castle, reuse: true}",
    "fads": "{name: fads}",
}
MODELS = {
    "distinct": "{model: l_diversity, attribute: diagnosis, l: 2}",
    "entropy": "{model: l_diversity, attribute: diagnosis, l: 2, variant: entropy}",
    "lc": "{model: lc_anonymity, attribute: diagnosis, l: 2, c: 0.7}",
}
ROWS = 1_500


def digests() -> dict[str, str]:
    """Return one digest per algorithm and model, and of the same groups as CSV."""
    found: dict[str, str] = {}
    payloads = list(islice(admissions(7), ROWS))
    for model, words in MODELS.items():
        for name, algorithm in STREAMS.items():
            rows = payloads if model == "distinct" else payloads[:400]
            found[f"stream, {name}, {model}"] = _digest(_stream(_schema(words, algorithm), rows))
        for name in ALGORITHMS:
            schema = _schema(words, STREAMS["cail"])
            try:
                check(name, schema)
            except Unsupported:
                continue
            groups = sorted(partition(name, _encoded(schema, payloads[:400]), schema).groups, key=lambda g: g.id)
            found[f"batch, {name}, {model}"] = _digest(encode_lines(groups))
            if name == "sweep":
                file = io.BytesIO()
                writer = CsvWriter(file)
                writer.write(groups)
                writer.close()
                found[f"batch as CSV, {name}, {model}"] = _digest(file.getvalue())
    return found


def _schema(model: str, algorithm: str) -> Schema:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.yaml"
        path.write_text(POLICY.replace("MODEL", model).replace("ALGORITHM", algorithm))
        return Schema.compile(load(path, {}))


def _encoded(schema: Schema, payloads: list[bytes]) -> object:
    n = len(payloads)
    ref = np.stack([np.zeros(n, dtype=np.int64), np.arange(n)], axis=1)
    return Encoder(schema).encode(payloads, ref, np.zeros(n)).batch


def _stream(schema: Schema, payloads: list[bytes]) -> bytes:
    pipeline, out = Pipeline(schema), []
    for start in range(0, len(payloads), 100):
        part = list(enumerate(payloads[start : start + 100], start=start))
        out += pipeline.feed(part, start / 100)[0]
    out += [group for groups in pipeline.finish(1e6) for group in groups]
    return encode_lines(out)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32] if data else "nothing"


if __name__ == "__main__":
    STORED.write_text(json.dumps(digests(), indent=1) + "\n")
