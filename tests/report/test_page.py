"""Pages as people see them: drawn by a real browser, without a request, a script or a complaint."""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from browser import browser, look
from playwright.sync_api import sync_playwright

from stream_anon.report import Delay, Page, Result, Risk, page_of, render
from stream_anon.report.parts import Bar, Bars, Curves, Pair, Pairs, Series, Table, Verdict, Verdicts
from stream_anon.report.result import COLUMNS, size_bins

RESULT = Result(
    records=1_234,
    published=1_200,
    suppressed=20,
    rejected=14,
    k=5,
    counts="people",
    loss=0.271,
    losses={"birth_year": 0.255, "<zip & more>": 0.568},
    sizes={5: 100, 6: 60, 90: 1},
    before=Risk(1.0, 0.9, 0.97),
    after=Risk(0.2, 0.191, 0.0),
    delay=Delay(3.0, 1.57, 2.7, ((1.0, 500), (2.0, 400), (3.0, 300))),
)
CURVES = Curves(
    "k = 5", "loss by bound", "bound", "loss",
    (Series("cail", ((500, 0.31), (1000, 0.29))), Series("sweep", ((0, 0.12),), level=True)), top=0.4,
)  # fmt: skip
WHOLE = Page(
    "Everything",
    "All kinds of parts.",
    page_of(RESULT, "", "").tiles,
    (
        Verdicts("Promises", "", (Verdict("at least 5 people", True, "5"), Verdict("no row twice", False, "row 7"))),
        *page_of(RESULT, "", "").parts,
        CURVES,
        Table("Runs", "", ("algorithm", "loss"), (("cail", "0.29"),)),
    ),
)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(render(WHOLE), encoding="utf-8")
    return path


def test_a_browser_draws_it_and_asks_for_nothing(page: Path, tmp_path: Path) -> None:
    shot = tmp_path / "page.png"
    seen = look(page, tmp_path, "--window-size=1280,1600", f"--screenshot={shot}")
    assert "CONSOLE" not in seen.log
    assert [address for address in seen.asked if address != "data:,"] == []
    assert seen.dom.count("<svg") == 5
    for number in ("56.8\u202f%", "27.1\u202f%", "1,200", "bound 3 s", "k = 5", "31.0\u202f%", "✗ BROKEN"):
        assert number in seen.dom
    png = shot.read_bytes()
    assert struct.unpack(">II", png[16:24]) == (1280, 1600)
    assert len(png) > 50_000  # an empty page of this size takes a tenth


OUTSIDE = """() => [...document.querySelectorAll('svg text')].filter(words => {
  const box = words.getBoundingClientRect(), drawing = words.ownerSVGElement.getBoundingClientRect();
  const pixels = parseFloat(getComputedStyle(words).fontSize) * words.getScreenCTM().a;
  return pixels < 9.5 || box.left < drawing.left - 1 || box.right > drawing.right + 1;
}).map(words => words.textContent)"""


def test_words_of_drawings_can_be_read_on_a_phone(tmp_path: Path) -> None:
    path, long = tmp_path / "page.html", "background knowledge of a neighbour"
    shares = (Bar(long, 0.999, "99.9\u202f%"), Bar(long, 0.5, "50.0\u202f%"))
    drawings = (Bars("Bars", "", shares), Pairs("Pairs", "", (Pair(long, 1.0, 0.123),)), *WHOLE.parts)
    path.write_text(render(replace(WHOLE, parts=drawings)), encoding="utf-8")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser(), args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page(viewport={"width": 400, "height": 800})
        page.goto(path.as_uri())
        assert page.locator("svg text").count() > 20
        assert page.evaluate(OUTSIDE) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        chromium.close()


def test_the_browser_would_tell(tmp_path: Path) -> None:
    """A page that does ask and complain is noticed: else the test above could not fail."""
    bad = tmp_path / "bad.html"
    bad.write_text("<script>console.error('no')</script><img src='http://127.0.0.1:9/a.png'>", encoding="utf-8")
    seen = look(bad, tmp_path)
    assert "CONSOLE" in seen.log
    assert "http://127.0.0.1:9/a.png" in seen.asked


class Outline(HTMLParser):
    """Headings, images without a name, and words that a browser would treat as markup."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.nameless = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        named = dict(attrs)
        self.nameless += tag == "svg" and not (named.get("aria-label") and named.get("role") == "img")


def test_it_can_be_read_aloud_and_on_paper() -> None:
    text = render(WHOLE)
    outline = Outline()
    outline.feed(text)
    assert outline.nameless == 0
    assert outline.tags.count("h1") == 1
    assert outline.tags.count("table") == 6  # one per chart, and the table itself
    assert "script" not in outline.tags
    assert '<html lang="en">' in text
    assert "@media print" in text
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"(src|href)=\"(?!data:,)|url\(|@import", text)


def test_names_are_not_markup() -> None:
    text = render(page_of(RESULT, "<b>", "a & b"))
    assert "<zip" not in text
    assert "<b>" not in text
    assert "&lt;zip &amp; more&gt;" in text


def test_what_is_wrong_looks_wrong() -> None:
    bad = Result(
        100,
        90,
        10,
        0,
        5,
        "people",
        0.9,
        {"zip": 0.9},
        {3: 30},
        Risk(1, 1, 1),
        Risk(1 / 3, 1 / 3, 1),
        Delay(1, 2, 3, ()),
    )
    tones = {tile.label: tile.tone for tile in page_of(bad, "", "").tiles}
    assert tones["Smallest group"] == tones["Highest risk"] == tones["Longest delay"] == "bad"
    assert tones["Withheld"] == tones["Information lost"] == "warn"


def test_nothing_published_is_a_page_too() -> None:
    nothing = Result(3, 0, 3, 0, 5, "people", 1.0, {"zip": 0.0}, {}, Risk.of([], 5), Risk.of([], 5))
    assert page_of(nothing, "", "").parts == ()
    assert "Withheld" in render(page_of(nothing, "", ""))


@pytest.mark.parametrize("sizes", [{5: 1}, {5: 990, 2000: 10}, {3: 2, 5: 9}, dict.fromkeys(range(5, 400), 2)])
def test_every_group_is_in_one_column(sizes: dict[int, int]) -> None:
    bins = size_bins(sizes, 5)
    assert sum(each.count for each in bins) == sum(sizes.values())
    assert len(bins) <= COLUMNS + 1
    assert all(one.high == two.low for one, two in pairwise(bins))
