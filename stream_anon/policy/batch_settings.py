"""The parameters of the batch algorithms, one small settings class each; what they do is in `batch`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stream_anon.grammar.fields import Number, Settings


class MondrianSettings(Settings):
    """Mondrian. `order` lists quasi-identifiers, most important first, and makes it AOS; without it the widest is cut.

    `strict` keeps equal values together, `relaxed` may divide them. `categories` are cut between the children of their
    common ancestor (`tree`) or at the median of the leaf order (`leaves`).
    """

    name: Literal["mondrian"] = "mondrian"
    order: list[str] = Field(default_factory=list)
    variant: Literal["strict", "relaxed"] = "strict"
    categories: Literal["tree", "leaves"] = "tree"


class SweepSettings(Settings):
    """The lattice sweep. `steps` is how many widths of a number are tried, `most` how many level vectors are walked.

    `rounds` of improvement follow, in which a class is cut anew with each of its `near` nearest. A number counts
    `gentle` of its nominal width in the order of the walk, for tightening gives some of it back.
    """

    name: Literal["sweep"] = "sweep"
    steps: int = Field(default=30, ge=2, le=1000)
    most: int = Field(default=20_000, ge=1, le=1_000_000)
    rounds: int = Field(default=2, ge=0, le=100)
    near: int = Field(default=10, ge=1, le=1000)
    gentle: Annotated[Number, Field(gt=0, le=1)] = 0.6


class LClusteringSettings(Settings):
    """L-clustering. `measure` is the uncertainty left by an interval or a set: `entropy` (log2) or `width`.

    With `weights: range` each column counts by one over its range, with `policy` by its weight in the policy.
    """

    name: Literal["l-clustering"] = "l-clustering"
    measure: Literal["entropy", "width"] = "entropy"
    weights: Literal["policy", "range"] = "policy"


class LIncognitoSettings(Settings):
    """Full-domain generalization. Numbers without a grid of their own are tried at widths of `widths` positions.

    The best level vector is the one that loses least as published (`ncp`), or least in bits (`entropy`).
    """

    name: Literal["l-incognito"] = "l-incognito"
    measure: Literal["ncp", "entropy"] = "ncp"
    widths: list[int] = Field(default=[1, 5, 10, 20, 40])


class LCClusteringSettings(Settings):
    """Personalized (l, c)-anonymity by clustering; classes of at least twice their l are split if `split`."""

    name: Literal["lc-clustering"] = "lc-clustering"
    split: bool = True


class GuardingSettings(Settings):
    """Guarding nodes: groups by quasi-identifiers, sensitive values raised inside them."""

    name: Literal["guarding"] = "guarding"


class KMemberSettings(Settings):
    """Settings of greedy k-member clustering."""

    name: Literal["k-member"] = "k-member"


BatchSettings = Annotated[
    MondrianSettings
    | SweepSettings
    | LClusteringSettings
    | LIncognitoSettings
    | LCClusteringSettings
    | GuardingSettings
    | KMemberSettings,
    Field(discriminator="name"),
]
