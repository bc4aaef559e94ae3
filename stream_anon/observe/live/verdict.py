"""The promise in words: does it hold, what does that rest on, and what is to be done if it does not."""

from __future__ import annotations

from collections.abc import Sequence

from stream_anon.observe.live.status import PartitionFacts, PolicyFacts, Totals, Verdict, WorkerFacts


def verdict(
    policy: PolicyFacts,
    totals: Totals,
    partitions: Sequence[PartitionFacts],
    workers: Sequence[WorkerFacts],
    warnings: Sequence[str] = (),
    late: int = 0,
) -> Verdict:
    """Judge a run: the worst that is known of it decides. `late` counts rows of the last minute beyond the bound."""
    if totals.violations:
        detail = f"{totals.violations:,} group(s) were stopped before they were published; nothing of them left"
        return Verdict("bad", "Stopped at the gate", detail, "this is a defect of stream-anon: please report it")
    if totals.missed:
        share = totals.missed / max(totals.published, 1)
        detail = f"{totals.missed:,} record(s), {share:.2%}, left after {policy.bound:g} s, in groups of {_k(policy)}"
        if late:
            return Verdict("bad", "Deadlines missed", detail, "give it more workers or cores, or a longer bound")
        return Verdict("warn", "Deadlines were missed", f"{detail}; none in the last minute")
    gone = [str(each.worker) for each in workers if each.state == "gone"]
    stalled = [str(each.worker) for each in workers if each.state == "stalled"]
    if gone or stalled:
        which = f"worker {', '.join(gone or stalled)}"
        title = "A worker is down" if gone else "A worker hangs"
        what = "does not run" if gone else "ended no round for a minute"
        detail = f"{which} of {len(workers)} {what}; {_kept(policy, totals)}"
        remedy = "it is started again by itself" if gone and len(workers) > 1 else "look at its log"
        return Verdict("bad" if len(workers) == 1 else "warn", title, detail, remedy)
    if (starting := [str(each.worker) for each in workers if each.state == "starting"]) and totals.published:
        detail = f"worker {', '.join(starting)} of {len(workers)} does not answer yet; {_kept(policy, totals)}"
        return Verdict("warn", "A worker is starting", detail)
    if quarantined := [each for each in partitions if each.state == "quarantined"]:
        which = ", ".join(str(each.partition) for each in quarantined)
        detail = f"partition {which} is not worked on; {_kept(policy, totals)}"
        return Verdict("warn", "A partition is quarantined", detail, quarantined[0].remedy)
    if warnings:
        return Verdict("warn", "Most records are rejected", warnings[0], "compare the policy with the records")
    if all(each.state == "ended" for each in workers):
        return Verdict("idle", "Ended", _kept(policy, totals))
    if not totals.published:
        unready = next((each.why for each in workers if each.why), "")
        return Verdict("idle", "Nothing published yet", unready or "the first groups are forming")
    return Verdict("good", "The promise holds", _kept(policy, totals))


def _kept(policy: PolicyFacts, totals: Totals) -> str:
    """Say what was kept so far."""
    if not totals.published:
        return "nothing was published yet"
    in_time = "" if policy.bound is None else f", each within {policy.bound:g} s"
    return f"{totals.published:,} records left in groups of {_k(policy)}{in_time}"


def _k(policy: PolicyFacts) -> str:
    return f"at least {policy.k} {policy.counts}"
