"""Limits on the share of rejected or suppressed records; a run that exceeds one is stopped."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from stream_anon.errors import TooMuchLost
from stream_anon.observe.tally import Tally
from stream_anon.policy import Policy

ENOUGH = 100
"""Records before a share is judged while a run goes on; at its end any number is enough."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest shares of rejected and of suppressed records, None where there is no limit.

    A run that rejected every record has always failed.
    """

    rejected: float | None = None
    suppressed: float | None = None

    @classmethod
    def of(cls, policy: Policy, rejected: float | None = None, suppressed: float | None = None) -> Limits:
        """Return the limits of a policy; those given here replace them."""
        return cls(
            policy.max_rejected if rejected is None else rejected,
            policy.max_suppressed if suppressed is None else suppressed,
        )

    def broken(self, tally: Tally, ended: bool = False) -> str | None:
        """Return the limit that a run exceeds, in words; None if it exceeds none."""
        return self.exceeded(tally.consumed, tally.rejected, tally.suppressed, ended)

    def exceeded(self, consumed: int, codes: Counter[str], suppressed: int, ended: bool = False) -> str | None:
        """Return the limit that these numbers exceed, in words; None if they exceed none."""
        rejected = codes.total()
        if not consumed or (not ended and consumed < ENOUGH):
            return None
        most = ", ".join(str(code) for code, _ in codes.most_common(1))
        if ended and rejected == consumed:
            return f"every record was rejected, most as {most}: the input is not what the policy describes"
        for word, count, limit, why in (
            ("rejected", rejected, self.rejected, f", most as {most}" if most else ""),
            ("suppressed", suppressed, self.suppressed, ""),
        ):
            if limit is not None and count > limit * consumed:
                shares = f"{count:,} of {consumed:,} records were {word}{why}: more than the {limit:.2%} allowed"
                return f"{shares} (max_{word})"
        return None

    def check(self, tally: Tally, ended: bool = True) -> None:
        """Raise TooMuchLost if a limit is exceeded."""
        broken = self.broken(tally, ended)
        if broken is not None:
            raise TooMuchLost(broken)


NO_LIMITS = Limits()
