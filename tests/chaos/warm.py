"""Imported by the parent of all workers: import what they need, and compile or load their kernels.

No client is made here, for its threads would not be in the children.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import confluent_kafka  # noqa: F401
import kafka  # noqa: F401
import worker  # noqa: F401

from stream_anon.cli.prepare import prepare
from stream_anon.cli.ready import make_ready


def _make_ready() -> None:
    text = Path(__file__).with_name("policy.yaml").read_text().replace("CLIENT", "auto").replace("LEDGER", "")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy.yaml"
        file.write_text(re.sub(r"\b(BOOTSTRAP|GROUP|INPUT|OUTPUT|DEAD)\b", lambda word: f"any-{word[0]}", text))
        make_ready(prepare(file)[1], quiet=True)


_make_ready()
