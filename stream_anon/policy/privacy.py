"""What a group must satisfy before it may be published: one small settings class per privacy model."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stream_anon.policy.fields import Number, Settings, Share

MOST = 1_000_000
"""No k or l beyond this: a group so large would never be complete, and counts must fit a machine word."""


class KAnonymity(Settings):
    """At least k different people in every group."""

    model: Literal["k_anonymity"]
    k: int = Field(ge=2, le=MOST)


class LDiversity(Settings):
    """At least l well-represented values: counted (`distinct`), by `entropy`, or `recursive` (c, l)."""

    model: Literal["l_diversity"]
    attribute: str
    l: int = Field(ge=2, le=MOST)  # noqa: E741 - the literature's name
    variant: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: Annotated[Number, Field(gt=0)] | None = None


class ValueProtection(Settings):
    """How much one sensitive value is protected: the number of values its group needs, and its sensitivity.

    `sensitivity` orders values in the batch algorithm `lc-clustering`: the most sensitive seed classes, the least fill
    them. The stream and the other algorithms do not look at it.
    """

    l: int = Field(ge=1, le=MOST)  # noqa: E741 - the literature's name
    sensitivity: Annotated[Number, Field(ge=0, le=1)] = 0.0


class LCAnonymity(Settings):
    """At least l values, none with a share above c; `values` raises l for single values, inline or from a CSV file."""

    model: Literal["lc_anonymity"]
    attribute: str
    c: Share
    l: int = Field(default=2, ge=1, le=MOST)  # noqa: E741 - the literature's name
    values: dict[str, ValueProtection] | str = Field(default_factory=dict)


class RunningEstimate(Settings):
    """Learn from the records themselves, and publish nothing before `after` of them have been seen."""

    after: int = Field(ge=1, le=10**12)


class AlphaK(Settings):
    """At least k people, and no value with a share above its alpha.

    `alpha` is one share for all values, a mapping, or a CSV file; or it follows from what people ask for in the
    attribute's `psf` field: alpha = max(1 - prf, floor), from a running estimate.
    """

    model: Literal["alpha_k"]
    attribute: str
    k: int = Field(ge=2, le=MOST)
    alpha: Share | dict[str, Share] | str | None = None
    default: Share = 1.0
    estimate: RunningEstimate | None = None
    floor: Share | None = None


class TCloseness(Settings):
    """The group's distribution of values is within t of the whole's, by `equal` or `ordered` distance."""

    model: Literal["t_closeness"]
    attribute: str
    t: Share
    distance: Literal["equal", "ordered"] = "equal"
    reference: dict[str, Annotated[Number, Field(ge=0)]] | str | None = None
    estimate: RunningEstimate | None = None


class GuardingNode(Settings):
    """Nobody's value can be placed under the node they guard with a probability above p."""

    model: Literal["guarding_node"]
    attribute: str
    p: Share


PrivacySettings = Annotated[
    KAnonymity | LDiversity | LCAnonymity | AlphaK | TCloseness | GuardingNode, Field(discriminator="model")
]
