"""After encoding no identifier is left anywhere in memory, and nothing holds a row's halves together."""

from __future__ import annotations

import gc
import json
import re
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from building import patients

from stream_anon.core.encode import Encoded, Encoder
from stream_anon.core.gate import Reason, release

COUNT = 40
BASE = 1_000_003  # made at run time, so that no constant of this file holds what is sought


def identifier(i: int) -> str:
    return "".join(["per", "son-", str(BASE * 7 + i)])


def ward(i: int) -> str:
    return "".join(["wa", "rd-", str(BASE + i)])


def zip_code(i: int) -> int:
    return 73_519 + 101 * i


def encode(encoder: Encoder) -> Encoded:
    """Nothing but the result outlives this call: neither payloads nor decoded rows."""
    payloads = [
        json.dumps(
            {
                "patient": identifier(i),
                "name": identifier(i) + "!",
                "undeclared": identifier(i) + "?",
                "age": 40,
                "home": {"zip": str(zip_code(i)), "ward": ward(i)},
                "illness": ("flu", "ulcer")[i % 2],
                "guard": ("lung", "")[i % 2],
            }
        ).encode()
        for i in range(COUNT)
    ]
    payloads.append(json.dumps({"patient": identifier(0), "age": identifier(1)}).encode())
    n = len(payloads)
    return encoder.encode(payloads, np.stack([np.zeros(n, np.int64), np.arange(n)], axis=1), np.zeros(n))


def contents(thing: Any) -> list[Any]:
    """What an object holds directly; the collector does not look into arrays of objects and decoded rows."""
    if isinstance(thing, np.ndarray):
        return thing.ravel().tolist() if thing.dtype == object else []
    if isinstance(thing, msgspec.Struct):
        return [getattr(thing, name) for name in thing.__struct_fields__]
    return gc.get_referents(thing)


def alive() -> Iterator[Any]:
    """Every object that the collector knows of or that is held by one it knows of, but for weak references' stand-ins.

    Whoever looks at one of those gets what it stands for, or an error where that is gone.
    """
    gc.collect()
    seen: dict[int, Any] = {}
    waiting = gc.get_objects()
    while waiting:
        thing = waiting.pop()
        if id(thing) not in seen and thing is not seen and type(thing) not in weakref.ProxyTypes:
            seen[id(thing)] = thing
            if not isinstance(thing, str | bytes | int | float):
                waiting.extend(contents(thing))
    return iter(list(seen.values()))


def places_of(*patterns: str) -> list[int]:
    """How many texts and byte strings match each; write a pattern so that it does not match itself."""
    compiled = [(re.compile(pattern), re.compile(pattern.encode())) for pattern in patterns]
    counts = [0] * len(patterns)
    for thing in alive():
        if isinstance(thing, str | bytes | bytearray):
            for i, (text, raw) in enumerate(compiled):
                counts[i] += ((text if isinstance(thing, str) else raw).search(thing)) is not None  # type: ignore[arg-type]
    return counts


IDENTIFIERS = rf"per[s]on-{BASE * 7 // 1000}\d\d\d"
WARDS = rf"war[d]-{BASE // 1000}\d\d\d"
CONTROL = rf"contro[l]-{BASE}"


def test_no_identifier_is_left_after_encoding(tmp_path: Path) -> None:
    schema = patients(tmp_path)
    encoder = Encoder(schema)
    result = encode(encoder)
    assert (len(result.batch), len(result.rejections)) == (COUNT, 1)
    group = release(result.batch, schema, Reason.BATCH)
    hidden = [np.array([{"deep": ("".join(["con", "trol-", str(BASE)]).encode(),)}], dtype=object)]
    found = dict(zip(("identifiers", "wards", "control"), places_of(IDENTIFIERS, WARDS, CONTROL), strict=True))
    assert found["control"] == len(hidden) == 1, "the search finds what is there"
    assert found["wards"] == COUNT, "what is published later is there, once each"
    assert found["identifiers"] == 0
    assert len(group.rows) == COUNT


def scalars(thing: Any) -> list[Any]:
    """The plain values that an object holds directly, without those of the objects inside it."""
    if isinstance(thing, np.ndarray):
        return thing.ravel().tolist()
    if isinstance(thing, dict):
        return [*thing.keys(), *thing.values()]
    return contents(thing)


def test_nothing_holds_a_quasi_identifier_beside_a_published_value(tmp_path: Path) -> None:
    """One half of a row is known by its zip code, the other by its ward; no list, tuple, array or object has both."""
    encoder = Encoder(patients(tmp_path))
    result = encode(encoder)
    halves = {zip_code(i): 0 for i in range(COUNT)} | {str(zip_code(i)): 0 for i in range(COUNT)}
    halves |= {ward(i): 1 for i in range(COUNT)}
    holders: dict[int, int] = {0: 0, 1: 0}
    for thing in alive():
        if thing is halves or isinstance(thing, str | bytes | int | float):
            continue
        found = {halves[value] for value in scalars(thing) if type(value) in (str, int) and value in halves}
        assert found != {0, 1}, f"a {type(thing).__name__} holds both halves of rows"
        for half in found:
            holders[half] += 1
    assert holders[0] >= 1, "the zip codes are somewhere"
    assert holders[1] >= 1, "the wards are somewhere"
    assert len(result.batch) == COUNT


def test_the_search_looks_into_decoded_rows() -> None:
    """They are what a careless encoder would keep."""
    row = msgspec.json.decode(
        json.dumps({"name": identifier(99), "zip": zip_code(1), "ward": ward(1)}).encode(),
        type=msgspec.defstruct("Row", [("name", str), ("zip", int), ("ward", str)], gc=False),
    )
    kept = [row]
    assert places_of(IDENTIFIERS) == [1]
    assert {zip_code(1), ward(1)} <= set(scalars(kept[0]))


def test_codes_of_sensitive_values_lie_apart_from_quasi_identifiers(tmp_path: Path) -> None:
    batch = encode(Encoder(patients(tmp_path))).batch
    arrays = [getattr(batch, name) for name in ("qi", "sensitive", "guard", "psf", "subject", "ref", "values")]
    for i, one in enumerate(arrays):
        for other in arrays[i + 1 :]:
            assert not np.shares_memory(one, other)
            assert one.base is None or one.base is not other.base
