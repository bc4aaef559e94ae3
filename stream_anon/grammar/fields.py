"""The building blocks of the policy's models: strictness, and the small types that more than one model uses."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

_DURATION = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


class Settings(BaseModel):
    """Frozen, strict settings: an unknown key, or a value of another type, is an error and never a guess.

    They are made ready when they are first used: by then all kinds that a field can be of are known.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        validate_default=True,
        hide_input_in_errors=True,
        defer_build=True,
    )


def seconds(value: Any) -> Any:
    """Turn a duration such as `5s`, `500ms`, `2m`, `1h` or `1d` into seconds; numbers are seconds already.

    >>> seconds("500ms"), seconds("2m"), seconds(3)
    (0.5, 120.0, 3.0)
    """
    if isinstance(value, str):
        match = _DURATION.fullmatch(value.strip())
        if match is None:
            raise ValueError("a duration is a number with a unit: 500ms, 5s, 2m, 1h, 1d")
        return float(match["number"]) * _SECONDS[match["unit"]]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


Duration = Annotated[
    float,
    BeforeValidator(seconds),
    Field(gt=0, allow_inf_nan=False),
    WithJsonSchema({"type": ["string", "number"], "pattern": r"^\d+(\.\d+)?\s*(ms|s|m|h|d)$", "exclusiveMinimum": 0}),
]
"""A length of time in seconds, written `5s`, `500ms`, `2m`, `1h`, `1d` or as a bare number of seconds."""

Share = Annotated[float, Field(gt=0, le=1), BeforeValidator(lambda v: float(v) if type(v) is int else v)]
"""A fraction in (0, 1]."""

Part = Annotated[float, Field(ge=0, le=1), BeforeValidator(lambda v: float(v) if type(v) is int else v)]
"""A fraction in [0, 1]."""

Number = Annotated[float, BeforeValidator(lambda v: float(v) if type(v) is int else v), Field(allow_inf_nan=False)]
"""Any finite number; an integer is one too."""
