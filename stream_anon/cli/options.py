"""Options that several commands share: when a run ends because too much is lost, and how cells are written."""

from __future__ import annotations

from typing import Annotated

import typer

from stream_anon.formats.text.encodings import EncodingError, known_encoding


def _encoding(name: str | None) -> str | None:
    try:
        known_encoding(name)
    except EncodingError as error:
        raise typer.BadParameter(str(error)) from None
    return name


MaxRejected = Annotated[
    float | None,
    typer.Option("--max-rejected", min=0, max=1, help="End with code 5 if a larger share of the records is rejected."),
]
MaxSuppressed = Annotated[
    float | None,
    typer.Option("--max-suppressed", min=0, max=1, help="End with code 5 if a larger share is suppressed."),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        callback=_encoding,
        help="The encoding of text that is not UTF-8 and has no byte order mark: windows-1252, mac-roman, ...",
    ),
]
QuoteFormulas = Annotated[
    bool,
    typer.Option(
        "--quote-formulas/--no-quote-formulas",
        help="Put ' before text in CSV cells that a spreadsheet would run: = + - @ first.",
    ),
]
