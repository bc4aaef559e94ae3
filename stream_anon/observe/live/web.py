"""The files of the live page and their headers: no inline script or style, nothing from elsewhere."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/charts.js": ("charts.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""The path of each file, its name in the package, its type."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""What every answer has: the page runs its own scripts alone, and no other site may frame or read it."""

_LOCAL = ("localhost", "127.0.0.1", "[::1]")


@cache
def file_of(path: str) -> tuple[bytes, str] | None:
    """Return a file of the page and its type, None if there is none of this name."""
    if path not in FILES:
        return None
    name, kind = FILES[path]
    return (files(__package__) / "page" / name).read_bytes(), kind


def from_here(host: str, bound_to: str) -> bool:
    """Tell whether a request was meant for this server: on the loopback, no other name leads here honestly.

    A site could let its own name point to the loopback and read the answer as its own (DNS rebinding).

    >>> from_here("localhost:9464", "127.0.0.1"), from_here("evil.example:9464", "127.0.0.1"), from_here("a", "0.0.0.0")
    (True, False, True)
    """
    if bound_to not in ("localhost", "127.0.0.1", "::1"):
        return True
    name = host.strip().lower()
    return not name or (name if name.endswith("]") else name.rpartition(":")[0] or name) in _LOCAL
