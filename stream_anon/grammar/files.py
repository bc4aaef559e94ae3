"""Reads the text of the policy and of the files it names; refuses what is not plain UTF-8 text of a sane size."""

from __future__ import annotations

from pathlib import Path

from stream_anon.errors import Diagnostic, PolicyError

POLICY_LIMIT = 1_000_000
"""Bytes. A policy is written by hand; a file beyond this is something else given by mistake."""

TABLE_LIMIT = 64_000_000
"""Bytes. Far above the largest public hierarchy (ICD-10 is about 10 MB), far below what would exhaust memory."""


def read_text(path: Path, shown: str, limit: int, remedy: str) -> str:
    """Return the text of a file without its byte order mark; `shown` is the file's name as the reader knows it.

    `remedy` is what to do where there is no such file, or nothing in it.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(limit + 1)
    except FileNotFoundError:
        raise _refusal("missing-file", "there is no such file", shown, remedy) from None
    except IsADirectoryError:
        raise _refusal("not-a-file", "this is a folder, a file is needed", shown, remedy) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a usable path"
        raise _refusal("unreadable-file", f"cannot be read: {reason}", shown) from error
    if len(raw) > limit:
        raise _refusal("file-too-large", f"larger than the limit of {limit:,} bytes", shown)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8-sig", "replace")) + 1
        raise _refusal(
            "not-utf8", "this byte is not UTF-8 text", shown, "save the file as UTF-8", line, column
        ) from None
    nul = text.find("\0")
    if nul >= 0:
        line, column = text.count("\n", 0, nul) + 1, nul - text.rfind("\n", 0, nul)
        raise _refusal("nul-character", "a NUL character: not a text file", shown, line=line, column=column)
    if not text.strip():
        raise _refusal("empty-file", "the file is empty", shown, remedy)
    return text


def _refusal(code: str, message: str, file: str, hint: str = "", line: int = 0, column: int = 0) -> PolicyError:
    return PolicyError([Diagnostic(code, message, file, line, column, hint=hint)])
