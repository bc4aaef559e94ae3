"""Options that several commands share: when a run ends because too much is lost, and how cells are written."""

from __future__ import annotations

from typing import Annotated

import typer

MaxRejected = Annotated[
    float | None,
    typer.Option("--max-rejected", min=0, max=1, help="End with code 5 if a larger share of the records is rejected."),
]
MaxSuppressed = Annotated[
    float | None,
    typer.Option("--max-suppressed", min=0, max=1, help="End with code 5 if a larger share is suppressed."),
]
QuoteFormulas = Annotated[
    bool,
    typer.Option(
        "--quote-formulas/--no-quote-formulas",
        help="Put ' before text in CSV cells that a spreadsheet would run: = + - @ first.",
    ),
]
