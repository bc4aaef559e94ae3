"""Plain lines of CSV by column: those that cannot be read in two ways. All others are left to the strict reader."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from stream_anon.core.decode import Payload
from stream_anon.formats.arrow.rows import ArrowRows

_LONGEST = 100_000
"""Bytes of a line, below the limit of a cell of the strict reader."""

_BOM = b"\xef\xbb\xbf"


def plain_rows(lines: Sequence[Payload], columns: Sequence[str], delimiter: str) -> ArrowRows | None:
    """Return the rows of lines, or None if one of them might be more, or less, than one record of all columns.

    Without quotes, carriage returns and zeros a record is a line, and its cells are what stands between delimiters.
    """
    if len(columns) < 2 or not lines or not all(type(line) is bytes and 0 < len(line) <= _LONGEST for line in lines):
        return None
    block = b"\n".join(lines) + b"\n"  # type: ignore[arg-type]
    if b'"' in block or b"\r" in block or b"\0" in block or block.startswith(_BOM) or find_spec("pyarrow") is None:
        return None
    import pyarrow as pa
    from pyarrow import csv

    try:
        table = csv.read_csv(
            pa.BufferReader(block),
            csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=list(columns)),
            csv.ParseOptions(delimiter=delimiter, quote_char=False, escape_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=False),
        )
    except pa.ArrowInvalid:  # not UTF-8, or another number of cells somewhere
        return None
    if table.num_rows != len(lines):
        return None
    [batch] = table.combine_chunks().to_batches()
    return ArrowRows(batch)
