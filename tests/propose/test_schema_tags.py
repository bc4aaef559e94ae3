"""What schemas tell of their fields: tags and descriptions of each format, and the roles they lead to."""

from __future__ import annotations

import json

import pytest

from stream_anon.formats.messages.notes import FieldNote, notes_of
from stream_anon.formats.messages.registry import Schema
from stream_anon.insight.propose import columns_of, hint_of, judge

HOME = {"type": "record", "name": "Home", "fields": [{"name": "zip", "type": "string", "confluent:tags": ["PII"]}]}
AVRO = {
    "type": "record",
    "name": "Visit",
    "fields": [
        {"name": "badge", "type": "string", "confluent:tags": ["PII"], "doc": "The badge."},
        {"name": "home", "type": ["null", HOME]},
        {"name": "finding", "type": "string", "doc": "Confidential."},
    ],
}
JSON = {
    "type": "object",
    "properties": {
        "badge": {"type": "string", "confluent:tags": ["PII"], "description": "The badge."},
        "home": {"type": "object", "properties": {"zip": {"type": "string", "confluent:tags": ["PII"]}}},
        "finding": {"type": "string", "description": "Confidential."},
    },
}
PROTO = """
syntax = "proto3";
import "confluent/meta.proto";
message Visit {
  string badge = 1 [(confluent.field_meta) = {doc: "The badge.", tags: ["PII"]}];
  Home home = 2;
  string finding = 3;  // Confidential.
}
message Home { string zip = 1 [(confluent.field_meta).tags = "PII"]; }
"""


@pytest.mark.parametrize(
    "schema",
    [Schema("AVRO", json.dumps(AVRO)), Schema("JSON", json.dumps(JSON)), Schema("PROTOBUF", PROTO)],
    ids=["avro", "json", "protobuf"],
)
def test_tags_and_descriptions_are_found_by_path(schema: Schema) -> None:
    found = notes_of(schema)
    assert found["badge"] == FieldNote(frozenset({"PII"}), "The badge.")
    assert found["home.zip"].tags == {"PII"}
    assert found["finding"].text == "Confidential."


def test_tags_that_the_registry_keeps_count_too() -> None:
    tags = (("**.zip", ("PRIVATE",)), ("Visit.finding", ("PII",)), ("other", ("PII",)))
    found = notes_of(Schema("AVRO", json.dumps(AVRO), tags=tags))
    assert found["home.zip"].tags == {"PII", "PRIVATE"}
    assert found["finding"].tags == {"PII"}
    assert not found["home"].tags


def test_a_schema_that_cannot_be_read_tells_nothing() -> None:
    for kind, text in (("AVRO", "{"), ("JSON", "[1]"), ("PROTOBUF", "message {"), ("AVRO", '{"fields": [1]}')):
        assert notes_of(Schema(kind, text)) == {}


def test_what_is_told_goes_before_what_values_look_like() -> None:
    rows = [
        {"badge": f"b{n % 40}", "age": 20 + n % 60, "finding": "abc"[n % 3], "ward": "xy"[n % 2]} for n in range(200)
    ]
    told = {"badge": ["PII"], "age": ["PII"], "finding": ["PRIVATE"], "ward": ["PUBLIC"]}
    hints = {name: hint for name, tags in told.items() if (hint := hint_of(tags, "")) is not None}
    found = {proposal.column.name: proposal for proposal in judge(columns_of(rows, text=False), hints)}
    assert [found[name].role for name in told] == ["identifier", "quasi_identifier", "sensitive", "quasi_identifier"]
    assert "tagged PII" in found["badge"].reason
    assert found["badge"].shape is None, "the values of an identifier are not written into a policy"
    assert "insensitive" in found["ward"].decide
