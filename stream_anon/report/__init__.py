"""HTML pages about results, one file each with its charts; no scripts, nothing loaded, no value of a record.

Takes numbers and words, knows nothing of how they came about, so that whoever measures or audits can use it.
"""

from stream_anon.report.page import render
from stream_anon.report.parts import Page
from stream_anon.report.result import Delay, Result, Risk, page_of

__all__ = ["Delay", "Page", "Result", "Risk", "page_of", "render"]
