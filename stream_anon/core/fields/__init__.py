"""What is done to a field before it is published: one module per kind, chosen by the policy's word `publish`.

Every module of this package that defines settings is a kind; other distributions add theirs by entry points of the
group `stream_anon.publish_kinds`.
"""

from __future__ import annotations

from stream_anon.core.fields.action import Action
from stream_anon.core.fields.settings import (
    PUBLISH_KINDS,
    AnyPublish,
    ChangeSettings,
    FieldUse,
    Holds,
    Materials,
    PublishSettings,
    Refused,
    publish_problems,
    publish_warnings,
)

__all__ = [
    "PUBLISH_KINDS",
    "Action",
    "AnyPublish",
    "ChangeSettings",
    "FieldUse",
    "Holds",
    "Materials",
    "PublishSettings",
    "Refused",
    "publish_problems",
    "publish_warnings",
]

PUBLISH_KINDS.discover(__name__, __path__)
