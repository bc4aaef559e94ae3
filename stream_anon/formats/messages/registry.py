"""A client of a schema registry: the part of Confluent's interface that Karapace, Apicurio and others offer too.

Nothing it says or logs holds a password, a token or a value of a record.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from stream_anon.errors import StreamAnonError

_TYPE = "application/vnd.schemaregistry.v1+json"
_ROUNDS = 3  # times that all addresses are tried
_PAUSE = 0.2  # seconds between two rounds, doubled each time
_LARGEST = 8 << 20  # bytes of an answer
_MOST_REFERENCES = 200
_WHOLE = 4  # times the timeout, which is for each wait, that an answer may take in all


class RegistryError(StreamAnonError):
    """The registry refused a request; another try would be refused as well."""


class RegistryAwayError(StreamAnonError):
    """No address of the registry answers, or it says that it cannot serve now: later it may."""


class Schema(NamedTuple):
    """A schema as the registry has it. `references` are the texts of those it imports by name, deepest first.

    `tags` are those that the registry keeps beside the text, by path of a field.
    """

    kind: str
    text: str
    references: tuple[tuple[str, str], ...] = ()
    tags: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """How a registry is reached. `credentials` is the value of the header `Authorization`, None without one."""

    urls: Sequence[str]
    credentials: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    timeout: float = 5.0


def basic(username: str, password: str) -> str:
    """Return the credentials of a user with a password."""
    return "Basic " + b64encode(f"{username}:{password}".encode()).decode()


class Registry:
    """A registry at one or several addresses, tried in turn; the one that answered last is asked first."""

    def __init__(self, access: Access, sleep: Callable[[float], None] = time.sleep, rounds: int = _ROUNDS) -> None:
        self._access, self._sleep, self._rounds = access, sleep, rounds
        self._urls = list(access.urls)

    def schema(self, schema_id: int) -> Schema | None:
        """Return the schema of a number, None if the registry has none of that number."""
        found = self._ask("GET", f"/schemas/ids/{schema_id}", missing=(404,))
        return None if found is None else self._complete(found)

    def latest(self, subject: str) -> Schema | None:
        """Return the newest schema of a subject, None if there is no such subject."""
        found = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/latest", missing=(404,))
        return None if found is None else self._complete(found)

    def register(self, subject: str, schema: Schema) -> int:
        """Register a schema and return its number; the same schema has the same number each time."""
        found = self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", _body(schema))
        return _number(found, "id")

    def registered(self, subject: str, schema: Schema) -> int | None:
        """Return the number under which a subject has this schema, None if it has not."""
        found = self._ask("POST", f"/subjects/{quote(subject, safe='')}", _body(schema), missing=(404,))
        return None if found is None else _number(found, "id")

    def breaks(self, subject: str, schema: Schema) -> list[str] | None:
        """Return why a schema may not follow the newest one of a subject, None if it may, or if there is none yet."""
        path = f"/compatibility/subjects/{quote(subject, safe='')}/versions/latest?verbose=true"
        found = self._ask("POST", path, _body(schema), missing=(404,))
        if found is None or found.get("is_compatible", True):
            return None
        reasons = found.get("messages")
        return (
            [str(reason) for reason in reasons] if isinstance(reasons, list) and reasons else ["it is not compatible"]
        )

    def _complete(self, found: Mapping[str, Any]) -> Schema:
        """Return a schema with the texts of all that it refers to."""
        references: dict[str, str] = {}
        try:
            self._collect(found.get("references") or (), references, set())
            kind = str(found.get("schemaType") or "AVRO")
            return Schema(kind, str(found["schema"]), tuple(references.items()), _tags(found))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise RegistryError("the schema registry answered with something that is no schema") from None

    def _collect(self, wanted: Sequence[Mapping[str, Any]], found: dict[str, str], seen: set[str]) -> None:
        """Add the texts of references, deepest first; `seen` are all names so far: they may refer to one another."""
        for reference in wanted:
            name = str(reference["name"])
            if name in seen:
                continue
            if len(seen) >= _MOST_REFERENCES:
                raise RegistryError(f"a schema refers to more than {_MOST_REFERENCES} others")
            seen.add(name)
            path = f"/subjects/{quote(str(reference['subject']), safe='')}/versions/{int(reference['version'])}"
            below = self._ask("GET", path)
            assert below is not None  # noqa: S101 - what is missing raises
            self._collect(below.get("references") or (), found, seen)
            found[name] = str(below["schema"])

    def _ask(self, method: str, path: str, body: Any = None, missing: Sequence[int] = ()) -> dict[str, Any] | None:
        """Ask every address in turn, some times over; raise `RegistryAwayError` if none can serve."""
        why = ""
        for attempt in range(self._rounds):
            if attempt:
                self._sleep(_PAUSE * 2 ** (attempt - 1))
            for url in list(self._urls):
                try:
                    status, answer = self._send(url, method, path, body)
                except (OSError, http.client.HTTPException, ValueError) as error:
                    why = type(error).__name__  # its text could hold the credentials
                    continue
                if status >= 500 or status == 429:
                    why = f"status {status}"
                    continue
                self._urls.sort(key=lambda each: each != url)  # the others keep their order
                if status in missing:
                    return None
                return _understood(status, answer, _host(url))
        raise RegistryAwayError(f"the schema registry does not answer at {', '.join(map(_host, self._urls))}: {why}")

    def _send(self, url: str, method: str, path: str, body: Any) -> tuple[int, bytes]:
        place, timeout = urlsplit(url), self._access.timeout
        if place.scheme == "https":
            context = self._access.tls or ssl.create_default_context()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                place.netloc.rpartition("@")[2], timeout=timeout, context=context
            )
        else:
            connection = http.client.HTTPConnection(place.netloc.rpartition("@")[2], timeout=timeout)
        headers = {"Accept": f"{_TYPE}, application/json", "Content-Type": _TYPE}
        if self._access.credentials is not None:
            headers["Authorization"] = self._access.credentials
        try:
            text = None if body is None else json.dumps(body).encode()
            connection.connect()
            with _hung_up_after(_WHOLE * timeout, connection.sock):
                connection.request(method, place.path.rstrip("/") + path, body=text, headers=headers)
                answer = connection.getresponse()
                return answer.status, answer.read(_LARGEST)
        finally:
            connection.close()


@contextmanager
def _hung_up_after(seconds: float, sock: socket.socket) -> Iterator[None]:
    """Let an exchange take no longer: who sends a byte now and then would never be over the time of one wait."""
    over = threading.Event()

    def hang_up() -> None:
        over.set()
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if over.is_set():
            raise TimeoutError


def _body(schema: Schema) -> dict[str, str]:
    return {"schema": schema.text} | ({} if schema.kind == "AVRO" else {"schemaType": schema.kind})


def _tags(found: Mapping[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    metadata = found.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    if not isinstance(tags, dict):
        return ()
    return tuple((str(path), tuple(map(str, names))) for path, names in tags.items() if isinstance(names, list))


def _understood(status: int, answer: bytes, host: str) -> dict[str, Any]:
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        found = None
    if status in (401, 403):
        raise RegistryError(f"the schema registry at {host} refuses the credentials (status {status})")
    if status >= 300 or not isinstance(found, dict):
        code = found.get("error_code", "") if isinstance(found, dict) else "no JSON"
        raise RegistryError(f"the schema registry at {host} refused a request (status {status}, {code})")
    return found


def _number(found: Mapping[str, Any] | None, name: str) -> int:
    number = (found or {}).get(name)
    if not isinstance(number, int) or not 0 <= number < 1 << 32:
        raise RegistryError("the schema registry answered without the number of a schema")
    return number


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2] or url
