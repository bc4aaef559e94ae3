"""A status in a few words: lines for a terminal, and a line of the log every half minute."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from math import inf

from stream_anon.observe.live.status import Distribution, Status

_log = logging.getLogger("stream_anon.summary")

EVERY = 30.0
"""Seconds between summaries in the log."""


def quantile(distribution: Distribution, share: float) -> float | None:
    """Return the value that a share of a distribution does not exceed; None if it is empty, inf beyond its last edge.

    >>> quantile(Distribution([0.0, 1.0, 2.0], [10, 10, 0]), 0.5), quantile(Distribution([0.0, 1.0], [0, 3]), 0.5)
    (1.0, inf)
    """
    edges, counts = distribution.edges, distribution.counts
    wanted, passed = sum(counts) * share, 0
    for i, count in enumerate(counts):
        if count and passed + count >= wanted:
            return edges[i] + (edges[i + 1] - edges[i]) * (wanted - passed) / count if i + 1 < len(edges) else inf
        passed += count
    return None


def loss_of(status: Status) -> float | None:
    """Return the mean loss of all attributes in the last minute; None if nothing was published."""
    known = [loss.minute for loss in status.losses if loss.minute is not None]
    return sum(known) / len(known) if known else None


def rate(values: list[float], step: float, over: float = 10.0) -> float:
    """Return the mean of the last seconds; the last value belongs to a step that is not over."""
    last = values[-round(over / step) - 1 : -1]
    return sum(last) / len(last) if last else 0.0


def lines_of(status: Status) -> list[str]:
    """Return what matters in three lines, the promise first; a remedy is a fourth."""
    totals, waiting, bound = status.totals, status.waiting, status.policy.bound
    flow = status.rates
    found = [f"{status.verdict.title}: {status.verdict.detail}"]
    found += [f"→ {status.verdict.remedy}"] if status.verdict.remedy else []
    oldest = f" (oldest {waiting.oldest:.1f} s)" if waiting.rows else ""
    found.append(
        f"in {rate(flow.consumed, flow.step):,.0f}/s   out {rate(flow.published, flow.step):,.0f}/s   "
        f"waiting {waiting.rows:,}{oldest}   not read yet {waiting.lag:,}   "
        f"suppressed {sum(totals.suppressed.values()):,}   rejected {sum(totals.rejected.values()):,}"
    )
    states = Counter(each.state for each in status.partitions)
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"
    found.append(f"{_delays(status, bound)}   loss {_percent(loss_of(status))}   partitions: {told}")
    return found


def _delays(status: Status, bound: float | None) -> str:
    of = "" if bound is None else f" of {bound:g} s"
    half, most = (quantile(status.delays, share) for share in (0.5, 0.99))
    if half is None or most is None:
        return f"delay -{of}"
    return f"delay p50 {_seconds(half, bound)}  p99 {_seconds(min(most, status.longest), bound)}{of}"


def _seconds(value: float, bound: float | None) -> str:
    return f"{value:.2f} s" if value != inf else f"> {bound:g} s"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


class Summaries:
    """A thread that logs the status every half minute, from the start until it is closed."""

    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="summary", daemon=True)

    def start(self) -> Summaries:
        """Start logging, and return this."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Log the last state and end the thread."""
        if not self._closed.is_set():
            self._closed.set()
            log_summary(self._status())

    def _run(self) -> None:
        while not self._closed.wait(EVERY):
            log_summary(self._status())


def log_summary(status: Status) -> None:
    """Write one line about a status into the log."""
    totals, loss, slowest = status.totals, loss_of(status), quantile(status.delays, 0.99)
    _log.info(
        "summary",
        extra={
            "verdict": status.verdict.title,
            "consumed": totals.consumed,
            "published": totals.published,
            "suppressed": sum(totals.suppressed.values()),
            "rejected": sum(totals.rejected.values()),
            "missed": totals.missed,
            "waiting": status.waiting.rows,
            "lag": status.waiting.lag,
            "delay_p99": None if slowest is None else round(min(slowest, status.longest), 3),
            "loss": None if loss is None else round(loss, 4),
        },
    )
