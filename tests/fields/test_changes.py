"""What is done to fields before they are published: what each kind makes of values, usual and hostile."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_anon.core.encode import Encoded, Encoder
from stream_anon.core.fields.patterns import LONGEST, fault_of
from stream_anon.core.schema import Schema
from stream_anon.policy import Policy

SECRET = "kX2-hj41_qPz9wLtVb7nRc3mYd8sFg5a"
DAILY = {"kind": "pseudonym", "scope": {"rotate": "1d", "by": "at"}}
FEW = settings(max_examples=40, deadline=None)


def schema(publish: Any, role: str = "identifier", field: str = "x", secret: str = SECRET, **attribute: Any) -> Schema:
    attributes = {
        "who": {"role": "identifier"},
        "sex": {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "flat", "values": ["f", "m"]}},
        field: {"role": role, "publish": publish, **attribute},
    }
    data = {"version": 1, "name": "t", "subject": "who", "secret": secret, "attributes": attributes}
    return Schema.of(Policy.model_validate(data | {"privacy": [{"model": "k_anonymity", "k": 2}]}))


def encode(made: Schema, *records: dict[str, Any]) -> Encoded:
    payloads = [json.dumps({"sex": "f", "who": "P1", **record}).encode() for record in records]
    ref = np.stack([np.zeros(len(payloads), np.int64), np.arange(len(payloads))], axis=1)
    return Encoder(made).encode(payloads, ref, np.zeros(len(payloads)))


def published(made: Schema, *records: dict[str, Any]) -> list[Any]:
    """Return what is published of the field of each record, the code for one that is rejected."""
    found = encode(made, *records)
    out: list[Any] = [None] * len(records)
    for rejection in found.rejections:
        out[rejection.index] = rejection.code.value
    kept = [i for i in range(len(records)) if i not in {r.index for r in found.rejections}]
    place = made.published.index("x" if "x" in made.published else "who")
    for i, row in zip(kept, found.batch.values, strict=True):
        out[i] = row[place]
    return out


DAYS = [{"at": f"2026-03-0{day}T{hour:02d}:59:59Z"} for day in (8, 9) for hour in (0, 23)]


def test_tokens_are_equal_within_a_day_and_differ_between_days() -> None:
    a, b, c, d = published(schema(DAILY, field="who"), *DAYS)
    assert a == b != c == d
    assert re.fullmatch("[0-9a-f]{32}", a)


def test_nothing_links_tokens_without_the_secret() -> None:
    mine = set(published(schema(DAILY, field="who"), *DAYS))
    theirs = set(published(schema(DAILY, field="who", secret=SECRET[::-1]), *DAYS))
    assert len(mine) == len(theirs) == 2
    assert not mine & theirs


def test_tokens_of_two_purposes_and_of_two_fields_differ() -> None:
    tokens = []
    for purpose in ("billing", "research", "x", None):
        publish = {"kind": "pseudonym", "scope": {"purpose": purpose}}
        tokens += published(schema(publish), {"x": "P1"})
    tokens += published(schema("pseudonym", "insensitive"), {"x": "P1"})
    assert len(set(tokens)) == 4
    other = schema("pseudonym").policy.model_copy(update={"name": "other"})
    assert published(Schema.of(other), {"x": "P1"})[0] not in tokens
    assert tokens[3] == tokens[4]  # the same field, the same secret: the same token in another process


def test_spellings_of_one_person_have_one_token() -> None:
    at = {"at": "2026-03-08"}
    made = published(schema(DAILY, field="who"), *({**at, "who": who} for who in ("P1", " p1", "\uff30\uff11", "P2")))
    assert made[0] == made[1] == made[2] != made[3]


PERIODS = [
    ("no time", {}, "missing"),
    ("null", {"at": None}, "missing"),
    ("no time at all", {"at": "noon"}, "wrong_type"),
    ("a time beyond the calendar", {"at": 10**18}, "wrong_type"),
    ("a truth", {"at": True}, "wrong_type"),
    ("an object", {"at": {"t": 1}}, "wrong_type"),
]


@pytest.mark.parametrize(("record", "code"), [row[1:] for row in PERIODS], ids=[row[0] for row in PERIODS])
def test_a_record_without_a_usable_time_is_rejected(record: dict[str, Any], code: str) -> None:
    assert published(schema(DAILY, field="who"), record) == [code]


CASES: list[tuple[str, Any, Any, Any]] = [
    ("the last four", {"kind": "mask", "last": 4}, "4111111111111111", "***1111"),
    ("a number's last four", {"kind": "mask", "last": 4}, 4111111111111111, "***1111"),
    ("too short to keep anything", {"kind": "mask", "first": 2, "last": 2}, "abcd", "***"),
    ("both ends", {"kind": "mask", "first": 1, "last": 1, "fill": "-"}, "abcd", "a-d"),
    ("nothing stays", "mask", "abcd", "***"),
    ("a pattern", {"kind": "mask", "pattern": "[0-9]+", "fill": r"\1"}, "a12b3", r"a\1b\1"),
    ("a pattern that finds nothing", {"kind": "mask", "pattern": "[0-9]+"}, "ab", "wrong_type"),
    ("unless that is allowed", {"kind": "mask", "pattern": "[0-9]+", "unmatched": "keep"}, "ab", "ab"),
    ("too long for patterns", {"kind": "mask", "pattern": "[0-9]+"}, "1" * (LONGEST + 1), "wrong_type"),
    ("nothing", "mask", None, "missing"),
    ("a word for nothing", "mask", "N/A", "missing"),
    ("nothing, allowed", {"kind": "mask", "missing": "null"}, None, None),
    ("an object", "mask", {"a": 1}, "wrong_type"),
    ("a list", "redact", ["a@b.c"], "wrong_type"),
    ("rounded", {"kind": "round", "step": 10}, 14, 10),
    ("half goes up", {"kind": "round", "step": 10}, 15, 20),
    ("negative", {"kind": "round", "step": 10}, -14, -10),
    ("numbers as text", {"kind": "round", "step": 0.5}, "1.3", 1.5),
    ("above the top", {"kind": "round", "step": 10, "top": 85}, 84.9, 80),
    ("above the top, exactly", {"kind": "round", "step": 10, "top": 85}, 1e300, 85),
    ("below the bottom", {"kind": "round", "bottom": 0.5}, -1e300, 0.5),
    ("too large to be rounded", {"kind": "round", "step": 10}, 1e300, "wrong_type"),
    ("no number", {"kind": "round", "step": 10}, "ten", "wrong_type"),
    ("a truth", {"kind": "round", "step": 10}, True, "wrong_type"),
    ("no date", {"kind": "shift", "days": 3}, "soon", "wrong_type"),
    ("a date at the end of time", {"kind": "shift", "days": 36500}, "9999-12-31T00:00:00.12345678Z" * 2, "wrong_type"),
    ("a date that is none", {"kind": "shift", "days": 3}, "2026-02-30", "wrong_type"),
]


@pytest.mark.parametrize(("publish", "value", "shown"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_what_becomes_of_a_value(publish: Any, value: Any, shown: Any) -> None:
    assert published(schema(publish), {"x": value}) == [shown]
    assert published(schema(publish, "insensitive"), {"x": value}) == [shown]


def test_dates_of_a_person_move_alike_and_keep_their_form() -> None:
    forms = ["2026-03-08", "2026-03-08T14:05:00+02:00", 1772928000000, "1772928000000"]
    made = published(schema({"kind": "shift", "days": 9}), *({"x": form} for form in forms))
    days = int(made[0][8:]) - 8 if made[0].startswith("2026-03") else int(made[0][8:]) - 36
    assert 1 <= abs(days) <= 9
    assert made[1] == made[0] + "T14:05:00+02:00"
    assert made[2] == 1772928000000 + days * 86_400_000
    assert made[3] == str(made[2])
    others = published(schema({"kind": "shift", "days": 9}), *({"x": forms[0], "who": f"P{i}"} for i in range(200)))
    assert forms[0] not in others
    assert len(set(others)) == 18
    assert published(schema({"kind": "shift", "days": 9}), {"x": forms[0], "who": " p1"}) == [made[0]]


def test_many_people_share_a_prefix() -> None:
    made = published(schema({"kind": "hash_prefix", "length": 1, "people": 100}), *({"x": f"P{i}"} for i in range(200)))
    assert len(set(made)) == 16


NOTE = (
    "Ann SMITH (p1) called from +1 (555) 010-0199, card 4111 1111 1111 1111, ann@x.org, 10.0.0.1 and fe80::1; "
    "DE89 3704 0044 0532 0130 00 is hers. Room AB12 was cold and damp, 12 beds."
)


def test_redaction_takes_out_what_names_or_reaches_a_person() -> None:
    assert published(schema("redact", "insensitive"), {"x": NOTE, "who": "p1"}) == [
        "Ann SMITH ([name]) called from [phone], card [phone], [email] [ip] and [ip]; [iban] is hers. "
        "Room AB12 was cold and damp, 12 beds."
    ]
    only = schema({"kind": "redact", "find": ["card", "names"]}, "insensitive")
    assert published(only, {"x": "Ms smith, 555-0101-22, 4111-1111-1111-1111", "who": "Smith Ann"}) == [
        "Ms [name], 555-0101-22, [card]"
    ]


def test_models_judge_what_is_published_of_a_sensitive_value() -> None:
    made = schema({"kind": "round", "step": 10}, "sensitive", type="number")
    found = encode(made, {"x": 11}, {"x": 12.5}, {"x": 19})
    assert len(set(found.batch.sensitive[:2, 0].tolist())) == 1
    assert found.batch.values[:, 0].tolist() == [10, 10, 20]
    assert found.batch.sensitive[0, 0] != found.batch.sensitive[2, 0]


def test_the_fingerprint_follows_the_settings_and_not_the_word_alone() -> None:
    prints = [schema(publish).fingerprint for publish in ("drop", "mask", {"kind": "mask", "last": 4}, "redact")]
    assert len(set(prints)) == 4
    policy = Policy.model_validate({**schema("drop").policy.model_dump(), "secret": None})
    assert "publish" not in policy.model_dump_json()


SAFE = [r"[0-9]+", r"[0-9]{4}-[0-9]{4}", r"[a-z]++@[a-z]++", r"(?:ab|cd)x", r"\w{1,20}@\w{1,20}", "(?i)abc"]
UNSAFE = [r"(a+)+b", r"(a|aa)+$", r"a*a*a*b", r"(.*)\1", r"(?=a)b", r"a*?b", r"(", r"a*", r".*.*", r"(?:a{1,99}){1,99}"]


@pytest.mark.parametrize("pattern", SAFE)
def test_usual_patterns_are_accepted(pattern: str) -> None:
    assert fault_of(pattern) is None


@pytest.mark.parametrize("pattern", UNSAFE)
def test_patterns_that_may_take_long_are_refused(pattern: str) -> None:
    assert fault_of(pattern) is not None


PIECE = st.sampled_from(["a", "b", "ab", "[ab]", ".", "a{1,3}", "[ab]*", "b+", "a++", "(?:ab|a)", "(?:ab){1,2}", "c?"])


@FEW
@given(st.lists(PIECE, min_size=1, max_size=8).map("".join), st.sampled_from(["a", "ab", "aab", "b"]))
def test_no_accepted_pattern_stalls(pattern: str, text: str) -> None:
    if fault_of(pattern) is None:
        begun = time.process_time()
        re.compile(pattern).subn("-", (text * LONGEST)[: LONGEST - 1] + "!")
        assert time.process_time() - begun < 1


KINDS = [
    DAILY,
    {"kind": "mask", "last": 2},
    {"kind": "mask", "pattern": r"\w{1,20}@\w{1,20}"},
    {"kind": "shift", "days": 30},
    {"kind": "round", "step": 0.3, "bottom": -5},
    {"kind": "hash_prefix", "length": 3, "people": 10**6},
    {"kind": "redact"},
]
HOSTILE = st.one_of(
    st.text(max_size=60),
    st.text("0123456789-+() .@:aA\u0130\u00df\uff11\u200b", max_size=300),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    st.dates().map(str),
    st.datetimes().map(str),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
)


@pytest.mark.parametrize("publish", KINDS, ids=[f"{i}-{kind['kind']}" for i, kind in enumerate(KINDS)])
@FEW
@given(st.lists(st.tuples(HOSTILE, HOSTILE, st.one_of(st.text(max_size=9), st.integers())), min_size=1, max_size=4))
def test_hostile_values_are_accounted_for(publish: dict[str, Any], rows: list[tuple[Any, Any, Any]]) -> None:
    made = schema(publish)
    records = [{"x": x, "at": at, "who": who} for x, at, who in rows]
    found = encode(made, *records)
    assert len(found.batch) + len(found.rejections) == len(records)
    assert {rejection.code.value for rejection in found.rejections} <= {"missing", "wrong_type"}
    for (_, number), [shown] in zip(found.batch.ref, found.batch.values, strict=True):
        _judge(publish, records[number]["x"], shown)


def _judge(publish: dict[str, Any], value: Any, shown: Any) -> None:
    """Check that nothing is left of the original that was to be removed."""
    match publish["kind"]:
        case "pseudonym":
            assert re.fullmatch("[0-9a-f]{32}", shown)
        case "hash_prefix":
            assert re.fullmatch("[0-9a-f]{3}", shown)
        case "mask" if "pattern" in publish:
            assert re.search(publish["pattern"], shown) is None
            assert "***" in shown
        case "mask":
            assert len(shown) in (3, 5)
            assert shown.startswith("***")
        case "shift":
            assert type(shown) is type(value)
            assert shown != value
        case "round":
            assert shown >= -5
            assert abs(shown / 0.3 - round(shown / 0.3)) < 1e-3 or shown == -5
        case "redact":
            assert "@" not in shown
            assert re.search(r"\d{7}", shown) is None


def test_long_hostile_texts_do_not_stall_redaction() -> None:
    made = schema("redact", "insensitive")
    texts = [
        "1 " * 10_000,
        "1" + " " * 19_999,
        "a:" * 10_000,
        "AB12" * 5_000,
        "(" * 20_000,
        "1." * 10_000,
        "@" * 20_000,
    ]
    begun = time.process_time()
    found = encode(made, *({"x": text, "who": " ".join("abcdefghij" * 9)} for text in texts))
    assert len(found.batch) == len(texts)
    assert time.process_time() - begun < 5
    assert published(made, {"x": "a" * 20_001}, {"x": "a", "who": " ".join(map(str, range(200)))}) == ["wrong_type"] * 2
