"""The answers of the status port, one request at a time: what is asked for decides, and nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from stream_anon.observe.live.status import schema
from stream_anon.observe.live.web import file_of

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


class Request(NamedTuple):
    """The parts of a request that matter."""

    method: str
    path: str
    headers: dict[str, str]

    @classmethod
    def of(cls, text: bytes) -> Request:
        """Read a request; whatever it is, it becomes one."""
        line, *headers = text.decode("latin-1").split("\r\n")
        method, _, rest = line.partition(" ")
        pairs: dict[str, str] = {}
        for name, _, value in (header.partition(":") for header in headers):
            pairs[name.lower()] = ",".join(filter(None, (pairs.get(name.lower()), value.strip())))
        return cls(method, rest.partition(" ")[0].partition("?")[0], pairs)


class Answer(NamedTuple):
    """An answer without its head."""

    status: HTTPStatus
    body: bytes
    kind: str = "text/plain"


class Answers:
    """What is known and how it is asked for. Without a registry there are no metrics."""

    def __init__(
        self,
        registry: CollectorRegistry | None,
        live: Callable[[], bool],
        ready: Callable[[], bool],
        warning: Callable[[], str],
        why: Callable[[], str],
    ) -> None:
        self._registry, self._live, self._ready, self._warning, self._why = registry, live, ready, warning, why

    def to(self, request: Request) -> Answer:
        """Return the answer to a request."""
        if request.method != "GET":
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET\n")
        match request.path:
            case "/metrics" if self._registry is not None:
                return _metrics(self._registry, request.headers.get("accept", ""))
            case "/livez" | "/readyz":
                return self._health(request.path)
            case "/api/schema":
                return Answer(HTTPStatus.OK, json.dumps(schema()).encode(), "application/schema+json")
            case path:
                file = file_of(path)
                return Answer(HTTPStatus.NOT_FOUND, b"not found\n") if file is None else Answer(HTTPStatus.OK, *file)

    def _health(self, path: str) -> Answer:
        good = self._live() and (path == "/livez" or self._ready())
        warning = self._warning() if path == "/readyz" else ""
        why = "" if good else self._why()
        body = ("ok\n" if good else "no\n") + (f"{why}\n" if why else "")
        body += f"warning: {warning}\n" if warning else ""
        return Answer(HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE, body.encode())


def _metrics(registry: CollectorRegistry, accept: str) -> Answer:
    from prometheus_client.exposition import choose_encoder

    try:
        encode, kind = choose_encoder(accept)
    except (TypeError, ValueError):  # a version that is no number: the client library compares it with one
        encode, kind = choose_encoder("")
    return Answer(HTTPStatus.OK, encode(registry), kind)
