"""The progress of a replay as a short text: which run it is, which range it reads, what it published and announced."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from base64 import b85decode, b85encode
from pathlib import Path
from typing import Any

import msgspec

from stream_anon.errors import StreamAnonError
from stream_anon.kafka.transport import Committed
from stream_anon.replay.offset_range import OffsetRange
from stream_anon.worker.ledger.budget import INLINE


class ReplayProgressError(StreamAnonError):
    """The stored progress cannot be used, or belongs to another run."""


class ReplayProgress(msgspec.Struct, frozen=True):
    """How far a replay came, in groups from the first on; the marks are keyed digests of all their bytes.

    What is announced is fixed: a run that goes on publishes exactly that next, or nothing.
    """

    run: str
    offset_range: OffsetRange | None = None
    published: int = 0
    published_mark: str = ""
    announced: int = 0
    announced_mark: str = ""
    done: bool = False

    def committed(self) -> Committed:
        """Return the progress as the text beside an offset."""
        text = b85encode(zlib.compress(msgspec.json.encode(self), 9)).decode("ascii")
        found = Committed(0, text + "\0")
        if not INLINE.fits(found):
            raise ReplayProgressError("the topic has too many partitions for one replay: replay some of them at a time")
        return found

    @classmethod
    def of(cls, committed: Committed) -> ReplayProgress:
        """Parse the progress from the text beside an offset."""
        try:
            text = zlib.decompress(b85decode(committed.metadata.partition("\0")[0]))
            return msgspec.json.decode(text, type=cls)
        except (ValueError, zlib.error, msgspec.DecodeError):
            raise ReplayProgressError(
                "the group of this replay was used by something else: name another output"
            ) from None

    def require(self, run: str, remedy: str) -> None:
        """Raise unless the progress belongs to this run."""
        if self.run != run:
            raise ReplayProgressError(
                f"another replay began here: other records, policy, algorithm or settings; {remedy}"
            )


def run_of(**facts: Any) -> str:
    """Return a short hash that identifies a run by these facts."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:24]


def kept_range(path: Path, run: str) -> OffsetRange | None:
    """Read the offset range that an interrupted run into a file kept in the file beside it."""
    if not path.exists():
        return None
    try:
        progress = msgspec.json.decode(path.read_bytes(), type=ReplayProgress)
    except (OSError, msgspec.DecodeError):
        raise ReplayProgressError(f"{path}: cannot be read; remove it and the partial output to start again") from None
    progress.require(run, f"remove {path} and the partial output to start again")
    return progress.offset_range


def keep_range(path: Path, run: str, offset_range: OffsetRange) -> None:
    """Write the offset range to a file atomically."""
    draft = path.with_name(path.name + ".new")
    with draft.open("wb") as file:
        file.write(msgspec.json.encode(ReplayProgress(run, offset_range)))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
