"""The contract of a file format: numbered parts, rows that do not depend on them, errors that name the file."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from stream_anon.auditor.raw.original import raw_columns
from stream_anon.auditor.reading.formats import Unreadable
from stream_anon.auditor.reading.formats import format_of as auditors
from stream_anon.batch import partition
from stream_anon.core.decode import Decoder, Payload
from stream_anon.errors import StreamAnonError
from stream_anon.formats.format import Format, TableError, flat
from stream_anon.testing.contract.rule import judged, rule
from stream_anon.testing.contract.tables import people, rows_of, table_schema

Make = Callable[[Path, Sequence[Mapping[str, Any]]], object]
"""Write plain records to a file of the format."""

FIELDS = ("who", "age", "zip", "sex", "job", "ill", "ward")


def check_format(kind: type[Format], make: Make) -> None:
    """Check a file format over made-up tables, and raise Broken for a rule it breaks.

    `make` writes records (text and whole numbers, no nested fields) to a file of the format. The rules: `known-by-
    suffix`, `reads-what-is-there`, `parts-follow-one-another`, `parts-change-nothing`, `refuses-what-is-missing`,
    `refuses-what-is-broken`, `writes-what-can-be-read`, `leaves-the-file-open`, `raises-nothing`; and, for a suffix
    that the auditor knows, `auditor-agrees`: its reader finds the same rows.
    """
    with tempfile.TemporaryDirectory() as place, judged(f"the format {getattr(kind, 'name', kind.__name__)}"):
        made = kind()
        named = bool(made.suffixes) and all(s.startswith(".") and s == s.lower() for s in made.suffixes)
        rule("known-by-suffix", named, "a suffix begins with a dot and is in lower case")
        folder, suffix = Path(place), made.suffixes[0]
        records = [{name: record[name] for name in FIELDS} for record in people(30)]
        path = folder / f"table{suffix}"
        make(path, records)
        reads(made, path, records)
        auditor_agrees(path, records)
        refuses(made, folder / f"absent{suffix}", path)
        writes(made, folder / f"published{suffix}")


def reads(made: Format, path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Check that a file is read as it was written, whatever the size of parts."""
    found = [_rows(made, path, at_once) for at_once in (1, 7, 10_000)]
    wanted = [{name: str(value) for name, value in record.items()} for record in records]
    got = [{name: str(value) for name, value in row.items()} for row in found[0]]
    rule("reads-what-is-there", got == wanted, "the rows that were read are not those that were written")
    rule("parts-change-nothing", found[1] == found[0] == found[2], "parts of another size have other rows")


def _rows(made: Format, path: Path, at_once: int) -> list[dict[str, Any]]:
    parts = list(made.read(path, at_once))
    first, reached, last = 1, 0.0, 0
    for part in parts:
        numbers = part.numbers.tolist()
        rule("parts-follow-one-another", part.first == first, f"a part begins with row {part.first}, not {first}")
        rule("parts-follow-one-another", len(part) <= at_once, f"a part has {len(part)} rows, not {at_once} at most")
        rising = numbers == sorted(set(numbers)) and (not numbers or numbers[0] > last) and len(numbers) == len(part)
        rule("parts-follow-one-another", rising, "the numbers of rows do not rise, or one is missing")
        rule("parts-follow-one-another", reached <= part.reached <= 1.0, "what is reached does not rise up to 1")
        first, reached, last = first + len(part), part.reached, (numbers or [last])[-1]
    rule("parts-follow-one-another", not parts or reached == 1.0, "the last part does not reach the end")
    return [_fields(payload) for part in parts for payload in part.payloads]


def _fields(payload: Payload) -> dict[str, Any]:
    decoded = Decoder({}).decode(payload)
    rule("reads-what-is-there", not isinstance(decoded, tuple), "a row is rejected that is right")
    if isinstance(payload, bytes):
        return flat(msgspec.json.decode(payload))
    return flat(payload) if isinstance(payload, Mapping) else {}


def auditor_agrees(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Check that the auditor's own reader, if it has one for the suffix, finds the same rows."""
    try:
        auditors(path)
    except Unreadable:
        return  # a format of others, which their auditor's part may or may not read
    found = [
        {name: str(value) for name, value in zip(columns, row, strict=True)}
        for columns, _ in raw_columns(path)
        for row in zip(*columns.values(), strict=True)
    ]
    wanted = [{name: str(value) for name, value in record.items()} for record in records]
    rule("auditor-agrees", found == wanted, "the auditor's reader finds other rows")


def refuses(made: Format, absent: Path, path: Path) -> None:
    """Check that a file that is not there, or is something else, ends in an error of its own and no other."""
    try:
        list(made.read(absent, 10))
        rule("refuses-what-is-missing", False, "a file that is not there was read")
    except (OSError, TableError):
        pass
    whole, chance = path.read_bytes(), Random(2)  # noqa: S311 - bytes of a test, no secrets
    for broken in (b"\x00\xff\xfe\n" * 20, whole[: len(whole) // 2], chance.randbytes(300), b""):
        path.write_bytes(broken)
        try:
            list(made.read(path, 10))
        except (OSError, TableError):
            pass
        except StreamAnonError as error:
            rule("refuses-what-is-broken", str(path) in str(error), "the error does not name the file")
        except Exception as error:
            rule("refuses-what-is-broken", False, f"a broken file raises {type(error).__name__}, not TableError")
    path.write_bytes(whole)


def writes(made: Format, path: Path) -> None:
    """Check that what is written can be read again, and that the file is left to whoever opened it."""
    if type(made).writer is Format.writer:
        return
    schema = table_schema("k_anonymity")
    groups = partition("mondrian", rows_of(schema, people(60)), schema).groups
    buffer = io.BytesIO()
    writer = made.writer(buffer)
    for group in groups:
        writer.write([group])
    writer.close()
    rule("leaves-the-file-open", not buffer.closed, "the writer closed the file, which somebody else opened")
    path.write_bytes(buffer.getvalue())
    rows = _rows(made, path, 1000)
    wanted = [flat(record) for group in groups for record in group.records()]
    rule("writes-what-can-be-read", len(rows) == len(wanted), "as many records are not read as were written")
    for row, record in zip(rows, wanted, strict=True):
        rule("writes-what-can-be-read", row.get("ill") == record["ill"], "a sensitive value is not in its record")
        there = {name.partition(".")[0] for name in row}  # a format may hold an interval as an object of two ends
        rule("writes-what-can-be-read", {"age", "ward"} <= there, "a field that was published is not in the file")
