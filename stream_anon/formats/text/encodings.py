"""Turn text in other encodings into UTF-8 while it is read: all that reads lines and records knows UTF-8 alone."""

from __future__ import annotations

import codecs
from difflib import get_close_matches

from stream_anon.errors import StreamAnonError

USUAL = ("utf-8", "utf-16", "windows-1252", "iso-8859-1", "iso-8859-15", "mac-roman", "cp850", "shift_jis", "gb18030")
_MARKS = {
    codecs.BOM_UTF8: None,
    codecs.BOM_UTF32_LE: "utf-32",  # begins as that of UTF-16 does
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
MARK = max(map(len, _MARKS))
"""Bytes that tell whether a text begins with a byte order mark."""


class EncodingError(StreamAnonError):
    """Text is not in the encoding that it was said to be in, or nobody knows that encoding."""


def known_encoding(name: str | None) -> str | None:
    """Return an encoding by its usual name, None for UTF-8 or if none is given; raise EncodingError for other words.

    >>> known_encoding("CP1252"), known_encoding("utf8"), known_encoding(None)
    ('cp1252', None, None)
    """
    if name is None:
        return None
    try:
        b"a\n".decode(name)  # what is in the registry of Python, and is no encoding of text, fails here
    except UnicodeError:  # UTF-32 takes four bytes for a letter
        pass
    except (LookupError, ValueError):
        meant = get_close_matches(name.lower(), USUAL, 1, 0.5)
        ask = f'did you mean "{meant[0]}"?' if meant else f"usual ones are {', '.join(USUAL)}"
        raise EncodingError(f'no encoding is called "{name}": {ask}') from None
    found = codecs.lookup(name).name
    return None if found == "utf-8" else found


def to_utf8(begin: bytes, name: str | None, source: str) -> ToUtf8 | None:
    """Return what makes UTF-8 of a text that begins with these `MARK` bytes, None if it is UTF-8 already.

    A byte order mark has the last word; without one and without a name, text is UTF-8.
    """
    for mark, marked in _MARKS.items():
        if begin.startswith(mark):
            name = marked
            break
    return ToUtf8(name, source) if name is not None and known_encoding(name) else None


class ToUtf8:
    """A function of the bytes read so far: it returns them in UTF-8, as far as they make whole letters.

    The end is told by no bytes. `source` is the name of the text in errors.
    """

    def __init__(self, name: str, source: str) -> None:
        self._name, self._source = name, source
        self._decoder = codecs.getincrementaldecoder(name)()
        self._lines = 0

    def __call__(self, chunk: bytes) -> bytes:
        """Return what these bytes add in UTF-8; raise EncodingError with the line of what is no text."""
        before = self._decoder.getstate()
        try:
            text = self._decoder.decode(chunk, not chunk)
        except UnicodeError:
            self._decoder.setstate(before)
            raise self._refused(chunk) from None
        self._lines += text.count("\n")
        return text.encode("utf-8", "surrogatepass")

    def _refused(self, chunk: bytes) -> EncodingError:
        """Return the error that names the line of the first letter that is none."""
        for byte in chunk:
            try:
                self._lines += self._decoder.decode(bytes([byte])) == "\n"
            except UnicodeError:
                break
        return EncodingError(
            f"{self._source}: line {self._lines + 1} is not text in {self._name}: "
            "name its encoding with --encoding, or save it as UTF-8"
        )
