"""Whether a command has so little to do that loading the compiler would take longer than all the rest.

The loops run as they are written then, and make the same groups: a first look at a policy and a few records waits for
no compiler, and needs none.
"""

from __future__ import annotations

import fcntl
import os
import select
import stat
import struct
import termios
from collections.abc import Sequence
from math import inf

SMALL = 8 * 1024
"""Bytes of text in all that is read; a hundred records or two."""
PATIENCE = 0.1
"""Seconds that a command waits for the end of what is piped into it: as good as nothing to who has more to send."""

STDIN = 0

_MAKE_NO_GROUPS = {"audit", "broker", "doctor", "feed", "handover", "schema", "topics"}
_FILES = {"anonymize": 2, "check": 1, "compare": 2, "init": 1, "pipe": 1, "preview": 2}
"""How many files a command reads at the least, its policy among them: what is not there may be far away, and large."""


def compile_if_worthwhile(arguments: Sequence[str]) -> None:
    """Decide for this command, before any kernel is imported, unless STREAM_ANON_COMPILE says it already."""
    if "STREAM_ANON_COMPILE" not in os.environ and is_small(arguments):
        os.environ["STREAM_ANON_COMPILE"] = "never"


def is_small(arguments: Sequence[str]) -> bool:
    """Tell whether a command makes no groups at all, or reads nothing but short files of text."""
    command = next((word for word in arguments if not word.startswith("-")), "")
    if command in _MAKE_NO_GROUPS:
        return True
    sizes = [_bytes_in(word) for word in arguments if os.path.exists(word)]
    if len(sizes) < _FILES.get(command, inf):
        return False
    if command == "pipe":
        sizes.append(_bytes_in(STDIN))
    return sum(sizes) <= SMALL


def _bytes_in(file: str | int) -> float:
    """Return how many bytes of text there are; without end where nobody knows: a producer, a packed file."""
    try:
        mode = os.stat(file).st_mode
        if stat.S_ISFIFO(mode) and isinstance(file, int):
            return _left_in_pipe(file)
        if not stat.S_ISREG(mode):
            return inf
        with open(file, "rb", closefd=isinstance(file, str), buffering=0) as opened:
            text = os.pread(opened.fileno(), SMALL + 1, 0)
        return len(text.decode())
    except (OSError, ValueError):
        return inf


def _left_in_pipe(pipe: int) -> float:
    """Return what waits in a pipe whose writer has left, or leaves at once."""
    poll = select.poll()
    poll.register(pipe, 0)  # asks for nothing but the end, which is always told
    if not poll.poll(PATIENCE * 1000):
        return inf
    waiting = fcntl.ioctl(pipe, termios.FIONREAD, struct.pack("i", 0))
    return int(struct.unpack("i", waiting)[0])
