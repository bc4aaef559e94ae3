"""Publish a field as it came: what becomes of all but identifiers unless the policy says otherwise."""

from __future__ import annotations

from typing import Literal

from stream_anon.core.fields.settings import PublishSettings


class Keep(PublishSettings):
    """The field is published as it came. The default of insensitive and sensitive attributes; never an identifier's."""

    roles = ("insensitive", "sensitive")

    kind: Literal["keep"]
