"""Prometheus metrics of a worker; labels are bounded, and nothing in them comes from a record."""

from __future__ import annotations

import time
from collections import Counter as ReasonCounter
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from stream_anon import __version__
from stream_anon.core.gate import Reason
from stream_anon.observe.observer import Floats, Observer

_SHARES = (0.1, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.25, 2.0)
"""Bucket borders of the delay, as shares of the bound: what matters is how near it comes."""

_SIZES = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
_WITHDRAWN = ("member_missing", "digest_differs", "member_rejected", "model_fails")
_LOSSES = tuple(i / 10 for i in range(1, 11))


class Metrics(Observer):
    """An observer that counts in its own registry. Counters of what must never happen exist from the start, at 0.

    `counts` is what the policy's k counts: people or records.
    """

    def __init__(
        self, policy: str, fingerprint: str, bound: float | None, attributes: Sequence[str], counts: str = "people"
    ) -> None:
        self.registry = registry = CollectorRegistry()
        self._attributes = tuple(attributes)
        buckets = [share * (bound or 5.0) for share in _SHARES]

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"stream_anon_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"stream_anon_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, borders: Sequence[float], *labels: str) -> Histogram:
            return Histogram(f"stream_anon_{name}", text, labels, registry=registry, buckets=list(borders))

        self._consumed = counter("records_consumed", "Records read that had to be worked on")
        self._published = counter("records_published", "Records made visible")
        self._suppressed = counter("records_suppressed", "Rows that will never be published", "reason")
        self._rejected = counter("records_rejected", "Records that could not be used", "code")
        self._groups = counter("groups_published", "Groups made visible", "reason")
        self._withdrawn = counter("groups_withdrawn", "Announced groups that could not be repeated", "reason")
        self._raised = counter("values_raised", "Sensitive values published as an ancestor, for a guard", "attribute")
        self._missed = counter("deadlines_missed", "Rows that left later than the bound; must stay 0")
        self._violations = counter("privacy_violations", "Groups stopped at the gate; must stay 0")
        self._delay = histogram("record_delay_seconds", "From receipt to visibility", buckets)
        if bound is not None:
            gauge("delay_bound_seconds", "The longest delay the policy allows").set(bound)
        self._age = histogram("record_age_seconds", "From the record's own time to visibility", buckets)
        self._size = histogram("group_size_records", "Rows in a group", _SIZES)
        self._loss = histogram("information_loss_ratio", "Share of information lost", _LOSSES, "attribute")
        self._buffered = gauge("buffered_records", "Rows that wait")
        self._clusters = gauge("open_clusters", "Clusters that rows wait in, where the algorithm keeps any")
        self._oldest = gauge("oldest_record_age_seconds", "Age of the row that waits longest")
        self._stage = histogram(
            "stage_duration_seconds", "Time in a step of the loop", (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3), "stage"
        )
        self._lag = gauge("consumer_lag_records", "Records not read yet", "partition")
        self._ledger = gauge("offset_metadata_bytes", "Size of what lies beside a partition's offset", "partition")
        self._record = gauge("ledger_record_bytes", "Size of a partition's ledger in the ledger topic", "partition")
        self._transactions = counter("transactions", "Transactions by result", "result")
        self._assigned = gauge("partitions_assigned", "Partitions worked on")
        self._quarantined = gauge("partitions_quarantined", "Partitions not touched, by reason", "code")
        self._codes: set[str] = set()
        for metric, values in (
            (self._transactions, ("committed", "aborted", "unknown")),
            (self._suppressed, ("deadline", "ledger_full", "retention")),
            (self._withdrawn, _WITHDRAWN),
            (self._groups, (Reason.READY, Reason.DEADLINE, Reason.FLUSH, "replayed")),
        ):
            for value in values:
                metric.labels(value)
        Info("stream_anon_build", "The program", registry=registry).info({"version": __version__})
        Info("stream_anon_policy", "The policy", registry=registry).info(
            {"name": policy, "fingerprint": fingerprint[:12], "k_counts": counts}
        )
        self.last_round = time.monotonic()
        age = gauge("round_age_seconds", "Time since the loop ended a round, told while it computes the next")
        age.set_function(lambda: time.monotonic() - self.last_round)

    def consumed(self, records: int) -> None:
        """Count the records that were read."""
        self._consumed.inc(records)

    def rejected(self, code: str, records: int) -> None:
        """Count rejected records by code."""
        self._rejected.labels(code).inc(records)

    def suppressed(self, reason: str, records: int) -> None:
        """Count suppressed rows by reason."""
        self._suppressed.labels(reason).inc(records)

    def published(
        self, reasons: Sequence[str], sizes: Sequence[int], delays: Floats, ages: Floats, losses: Floats
    ) -> None:
        """Count groups and rows, and observe their sizes, delays, ages and losses."""
        self._published.inc(len(delays))
        for reason, groups in ReasonCounter(reasons).items():
            self._groups.labels(reason).inc(groups)
        observe_all(self._size, np.asarray(sizes, dtype=np.float64))
        observe_all(self._delay, delays)
        observe_all(self._age, ages[~np.isnan(ages)])
        for name, values in zip(self._attributes, losses.T, strict=False):
            observe_all(self._loss.labels(name), values)

    def raised(self, attribute: str, records: int) -> None:
        """Count raised sensitive values by attribute."""
        self._raised.labels(attribute).inc(records)

    def withdrawn(self, reason: str, groups: int, records: int) -> None:
        """Count withdrawn groups by reason."""
        self._withdrawn.labels(reason).inc(groups)

    def missed(self, records: int) -> None:
        """Count rows that left too late."""
        self._missed.inc(records)

    def violated(self) -> None:
        """Count groups stopped at the gate."""
        self._violations.inc()

    def transaction(self, result: str, seconds: float) -> None:
        """Count transactions by result, and observe how long they took."""
        self._transactions.labels(result).inc()

    def stage(self, stage: str, seconds: float) -> None:
        """Observe the duration of a step of the loop."""
        self._stage.labels(stage).observe(seconds)

    def ledger(self, partition: int, beside: int, whole: int) -> None:
        """Set the size of what lies beside a partition's offset, and of its ledger if that lies in a topic."""
        self._ledger.labels(str(partition)).set(beside)
        if whole != beside:
            self._record.labels(str(partition)).set(whole)

    def lag(self, partition: int, records: int) -> None:
        """Set the lag of a partition."""
        self._lag.labels(str(partition)).set(records)

    def buffered(self, rows: int, oldest: float, clusters: int) -> None:
        """Set the number of waiting rows, the age of the oldest, and the open clusters."""
        self._buffered.set(rows)
        self._clusters.set(clusters)
        self._oldest.set(oldest)

    def assigned(self, partitions: int, quarantined: dict[int, str]) -> None:
        """Set the number of partitions, and clear the quarantine codes that no longer hold."""
        self._assigned.set(partitions)
        self._codes |= set(quarantined.values())
        for code in self._codes:
            self._quarantined.labels(code).set(list(quarantined.values()).count(code))

    def left(self, partition: int) -> None:
        """Remove the gauges of a partition: from now on its new owner reports them."""
        for gauge in (self._lag, self._ledger, self._record):
            with suppress(KeyError):
                gauge.remove(str(partition))

    def alive(self) -> None:
        """Record the time of the last round."""
        self.last_round = time.monotonic()


def observe_all(histogram: Histogram, values: Floats) -> None:
    """Add many observations at once: one search over the buckets instead of one per value."""
    if not len(values):
        return
    borders = np.asarray(histogram._upper_bounds)
    counts = np.bincount(np.searchsorted(borders, values), minlength=len(borders))
    for bucket, count in zip(histogram._buckets, counts.tolist(), strict=False):
        if count:
            bucket.inc(count)
    histogram._sum.inc(float(values.sum()))
