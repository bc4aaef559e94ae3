"""Changed fields in the formats with schemas: each is declared as what it holds."""

from __future__ import annotations

from typing import Any

from stream_anon.core.schema import Schema
from stream_anon.formats.messages.shape import shape_of
from stream_anon.policy import Policy

SECRET = "kX2-hj41_qPz9wLtVb7nRc3mYd8sFg5a"
PUBLISH: dict[str, Any] = {
    "token": {"kind": "pseudonym", "scope": {"rotate": "1d", "by": "at"}},
    "prefix": {"kind": "hash_prefix", "length": 1, "people": 500},
    "card": {"kind": "mask", "last": 2},
    "note": "redact",
    "born": {"kind": "shift", "days": 20},
    "tens": {"kind": "round", "step": 10, "top": 90},
    "halves": {"kind": "round", "step": 0.5},
    "top": {"kind": "round", "top": 90},
    "gone": "drop",
}
HOLDS = {
    "pay": "real", "token": "text", "prefix": "text", "card": "text", "note": "text", "born": "scalar", "tens": "whole",
    "halves": "real", "top": "real",
}  # fmt: skip


def test_the_shape_of_a_record_has_changed_fields_by_their_types() -> None:
    sex = {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "flat", "values": ["f", "m"]}}
    attributes: dict[str, Any] = {"who": {"role": "identifier"}, "sex": sex}
    attributes["pay"] = {"role": "sensitive", "type": "number", "publish": {"kind": "round", "step": 10}}
    attributes |= {name: {"role": "identifier", "publish": publish} for name, publish in PUBLISH.items()}
    data = {"version": 1, "name": "t", "subject": "who", "secret": SECRET, "attributes": attributes}
    schema = Schema.of(Policy.model_validate(data | {"privacy": [{"model": "k_anonymity", "k": 2}]}))
    assert {leaf.name: leaf.holds for leaf in shape_of(schema).leaves()} == {"sex": "text"} | HOLDS
