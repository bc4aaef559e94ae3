"""Records nobody should send, in any number: each alone could end a careless worker."""

from __future__ import annotations

import json
import random
from typing import Any

GOOD: dict[str, Any] = {"person": "p", "age": 30, "zip": "02139", "when": 1_700_000_000_000, "illness": "flu"}
FIELDS = ["person", "age", "zip", "when", "weight", "illness", "note", "deep.inside"]
DIGITS = "9" * 5_000
TEXTS = [
    "1e400",
    "-1e400",
    "NaN",
    "-Infinity",
    "Infinity",
    "1e-400",
    "-0",
    "0.1e1",
    "1E5",
    DIGITS,
    f"-{DIGITS}",
    f"0.{DIGITS}",
    f"{DIGITS}.5",
    f"1e{DIGITS}",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "1" * 400,
    "true",
    "null",
    "[]",
    "{}",
    '""',
    '" "',
    '"\\u0000"',
    '"\\ud800"',
    '"\\udc00x"',
    '"\\ud800\\ud800"',
    '"\\uD83D"',
    '"\\u202e"',
    '"\\ufeff"',
    '"\\u200b"',
    '"e\\u0301"',
    '"\\\\"',
    '"%s%b%n{}"',
    '"=cmd()"',
    '"\\n"',
    '"\\r\\n"',
    '"0x10"',
    '"9999-99-99T99:99:99"',
    '"0000-00-00"',
    '"-1"',
    '"1_000"',
    '"\u0662\u0660"',
    '"\u0661"',
    '"NaN"',
    '"*"',
    '"021**"',
    '"[1, 2]"',
    '"' + "x" * 70_000 + '"',
    '"' + "\u00e9" * 30_000 + '"',
    '{"a": {"b": [1, {"c": null}]}}',
    "[1, [2, [3]]]",
    "[" * 100 + "]" * 100,
    "[" * 974 + "]" * 974,
    "[" * 1_020 + "]" * 1_020,
    '{"a":' * 974 + "1" + "}" * 974,
    "[" * 5_000 + "]" * 5_000,
]
"""Values as JSON, or nearly, for any field."""
NESTED = [json.dumps(GOOD)[:-1] + f', "note": {"[" * n}{"]" * n}}}' for n in range(850, 1_050)]
"""Values as deep as can just be read: somewhere there is one that cannot be written, depending on who writes."""
WHOLE: list[bytes | None] = [
    None,
    b"",
    b" ",
    b"\x00",
    b"\xef\xbb\xbf" + json.dumps(GOOD).encode(),
    json.dumps(GOOD).encode("utf-16"),
    b"\xff" * 100,
    b"\x00\x00\x00\x00\x07avro",
    json.dumps(GOOD).encode() + b"\x00",
    json.dumps(GOOD).encode() * 2,
    b"null",
    b"true",
    b"1e999",
    b'"x"',
    b"[]",
    b"{}",
    b"{",
    b"}",
    b'{"age"}',
    b'{"age":}',
    b'{"age":1,}',
    b"{'age': 1}",
    b'{"age": 1 "zip": 2}',
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"' + b"k" * 500_000 + b'": 1}',
    b"{" + b",".join(b'"k%d":%d' % (i, i) for i in range(20_000)) + b"}",
    b'{"age": 30, "age": "thirty", "age": null}',
    b'{"_anon": {"group": "mine"}, "age": 30}',
    b'{"": 1, " ": 2, "\\u0000": 3}',
    b'{"person": "\xc3\x28", "age": 1}',
    b'{"person": "\xed\xa0\x80", "age": 1}',
    b'{"person": "\xf5\x80\x80\x80"}',
    b'{"person": "' + b"x" * 1_000_000 + b'"}',
    json.dumps({**GOOD, "note": "x" * 1_000_000}).encode(),
    json.dumps({**GOOD, "illness": "x" * 900_000}).encode(),
    json.dumps({**GOOD, "note": ["\u0001"] * 90_000}).encode(),
]
"""Whole records, some as large as a topic takes."""


def hostile(count: int, seed: int = 1) -> list[bytes | None]:
    """So many records: every whole one, and good ones with one to three fields gone wrong."""
    chance = random.Random(seed)
    made: list[bytes | None] = [*WHOLE, *(text.encode() for text in NESTED)]
    small = [record for record in WHOLE if record is None or len(record) < 10_000]
    while len(made) < count:
        if chance.random() < 0.2:
            made.append(chance.choice(small))
            continue
        fields = {name: json.dumps(value) for name, value in GOOD.items()}
        for name in chance.sample(FIELDS, chance.randint(1, 3)):
            fields[name] = chance.choice(TEXTS)
        inside = fields.pop("deep.inside", "1")
        body = ", ".join([f'"{name}": {text}' for name, text in fields.items()] + [f'"deep": {{"inside": {inside}}}'])
        made.append(f"{{{body}}}".encode("utf-8", "surrogatepass"))
    chance.shuffle(made)
    return made
