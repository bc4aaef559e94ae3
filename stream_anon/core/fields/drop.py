"""Leave a field out of the output: what becomes of identifiers unless the policy says otherwise."""

from __future__ import annotations

from typing import Literal

from stream_anon.core.fields.settings import PublishSettings


class Drop(PublishSettings):
    """The field is not published. The default of identifiers."""

    shown = False

    kind: Literal["drop"]
