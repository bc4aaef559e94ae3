"""The settings of the lattice sweep."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stream_anon.grammar.fields import Number, Settings


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
