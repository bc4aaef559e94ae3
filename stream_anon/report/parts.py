"""What a page is made of: figures to read at a glance, charts, tables and verdicts, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "good", "warn", "bad"]
"""What a figure means for its reader; told in words too, never by colour alone."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure, large, with its name above and a remark below."""

    label: str
    value: str
    note: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Bar:
    """A share from 0 to 1 and how it is written."""

    label: str
    share: float
    text: str


@dataclass(frozen=True, slots=True)
class Bars:
    """Shares of a whole, one line each."""

    title: str
    caption: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on an axis that matters: a bound, or what is required."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Bin:
    """How many lie from `low` to below `high`."""

    low: float
    high: float
    count: int
    label: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many of what size, against a mark."""

    title: str
    caption: str
    axis: str
    counted: str
    bins: tuple[Bin, ...]
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """The same share before and after."""

    label: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Pairs:
    """Shares before and after, against a mark."""

    title: str
    caption: str
    pairs: tuple[Pair, ...]
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One curve. A level one holds for every x: it has a single point and is drawn across."""

    name: str
    points: tuple[tuple[float, float], ...]
    level: bool = False


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves over the same axis. `top` is where the vertical axis ends."""

    title: str
    caption: str
    across: str
    up: str
    series: tuple[Series, ...]
    top: float = 1.0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of words and numbers; columns of numbers are told by their first row."""

    title: str
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One promise, whether it was kept, and what was found."""

    promise: str
    kept: bool
    found: str


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What was promised, line by line."""

    title: str
    caption: str
    verdicts: tuple[Verdict, ...]


Part = Bars | Histogram | Pairs | Curves | Table | Verdicts


@dataclass(frozen=True, slots=True)
class Page:
    """A page: what it is about in a sentence, figures, parts in order, and a remark at the end."""

    title: str
    lead: str
    tiles: tuple[Tile, ...]
    parts: tuple[Part, ...]
    foot: str = ""
