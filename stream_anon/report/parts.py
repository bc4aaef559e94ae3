"""The parts of a page as plain data: figures to read at a glance, charts, tables and verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "good", "warn", "bad"]
"""What a figure means for its reader; also written in words, never shown by colour alone."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One large figure with its name above and a remark below."""

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
    """A bar chart of shares of a whole, one line each."""

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
    """The count of items from `low` to below `high`."""

    low: float
    high: float
    count: int
    label: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """A histogram of sizes, against a mark."""

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
    """A chart of shares before and after, against a mark."""

    title: str
    caption: str
    pairs: tuple[Pair, ...]
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One curve. A level series holds for every x: it has a single point and is drawn across."""

    name: str
    points: tuple[tuple[float, float], ...]
    level: bool = False


@dataclass(frozen=True, slots=True)
class Curves:
    """A chart of curves over the same axis. `top` is where the vertical axis ends."""

    title: str
    caption: str
    across: str
    up: str
    series: tuple[Series, ...]
    top: float = 1.0


@dataclass(frozen=True, slots=True)
class Table:
    """A table of words and numbers; the first row decides which columns are numbers."""

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
    """A list of promises and whether each was kept."""

    title: str
    caption: str
    verdicts: tuple[Verdict, ...]


Part = Bars | Histogram | Pairs | Curves | Table | Verdicts


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its subject in a sentence, figures, parts in order, and a remark at the end."""

    title: str
    lead: str
    tiles: tuple[Tile, ...]
    parts: tuple[Part, ...]
    foot: str = ""
