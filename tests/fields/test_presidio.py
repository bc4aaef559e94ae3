"""Presidio beside our own patterns: what it finds is taken out, and what it cannot do is told before the run."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest
from test_changes import encode, published, schema

from stream_anon.core.fields.presidio import LONGEST_SEARCHED
from stream_anon.errors import StreamAnonError

NOTE = "SSN 536-90-4399, NHS number 943 476 5919, mail ann@x.org, 12 beds; she is P1."


def redact(find: list[str], **more: Any) -> dict[str, Any]:
    return {"kind": "redact", "presidio": {"find": find, **more}}


def test_what_it_finds_has_its_own_name_and_the_rest_is_found_as_ever() -> None:
    made = schema(redact(["US_SSN", "UK_NHS"]), "insensitive")
    assert published(made, {"x": NOTE}, {"x": "nothing to be found"}, {"x": "a" * (LONGEST_SEARCHED + 1)}) == [
        "SSN [us_ssn], NHS number [uk_nhs], mail [email] 12 beds; she is [name].",
        "nothing to be found",
        "wrong_type",
    ]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (redact(["PERSON"]), "entities like PERSON need a `model`: it knows"),
        (redact(["US_SNN"]), "does not look for US_SNN in the language en"),
        (redact(["PERSON"], model="no_such_pipeline"), "spaCy does not know the pipeline no_such_pipeline"),
        (redact(["US_SSN"], language="xyz"), "spaCy does not know the language xyz"),
    ],
)
def test_what_it_cannot_find_is_told_before_the_run(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(StreamAnonError, match=told):
        encode(schema(settings, "insensitive"), {"x": "some text"})


def test_without_it_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    with pytest.raises(StreamAnonError, match=r"pip install 'stream-anon\[presidio\]'"):
        encode(schema(redact(["US_SSN"], score=0.41), "insensitive"), {"x": "some text"})


def test_hostile_texts_do_not_keep_it_for_long() -> None:
    made = schema(redact(["US_SSN", "PHONE_NUMBER", "IBAN_CODE", "IP_ADDRESS", "CREDIT_CARD"], score=0), "insensitive")
    encode(made, {"x": "warm"})
    parts = ["1.", ":", "1 ", "a.", "1-", "DE89 ", "::", "+1 ", "(", "a@a."]
    begun = time.process_time()
    assert len(encode(made, *({"x": part * (LONGEST_SEARCHED // len(part))} for part in parts)).batch) == len(parts)
    assert time.process_time() - begun < 10
