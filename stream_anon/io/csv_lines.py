"""Records from lines of CSV as they come: the first line names the fields, a quoted cell may go on over several."""

from __future__ import annotations

import csv

from stream_anon.core.decode import Payload, Reject
from stream_anon.errors import StreamAnonError
from stream_anon.io.lines import Lines


class CsvLines:
    """Reads as `Lines` does; a record is the mapping of its cells, and has the number of its last line."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._names: list[str] = []
        self._delimiter = ","
        self._open: list[str] = []  # lines of a record whose quotes are not closed yet

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return self._lines.ended

    def read(self, timeout: float | None) -> list[tuple[int, Payload]]:
        """What has arrived by now, or within `timeout` seconds if nothing has."""
        records = [(number, self._record(line)) for number, line in self._lines.read(timeout)]
        return [(number, record) for number, record in records if record is not None]

    def _record(self, line: Payload) -> Payload:
        """The record that ends with this line; None if it goes on, or if the line names the fields."""
        if not isinstance(line, bytes):
            return line
        try:
            self._open.append(line.decode("utf-8").removesuffix("\r"))
        except UnicodeDecodeError:
            self._open.clear()
            return Reject.WRONG_TYPE
        if sum(part.count('"') for part in self._open) % 2 and not self.ended:
            return None
        text, self._open = "\n".join(self._open), []
        if not self._names:
            self._name(text)
            return None
        [cells] = csv.reader([text], delimiter=self._delimiter)
        return dict(zip(self._names, cells, strict=False))

    def _name(self, header: str) -> None:
        self._delimiter = max(",;\t", key=header.count)
        self._names = next(csv.reader([header], delimiter=self._delimiter), [])
        if len(set(self._names)) < len(self._names):
            raise StreamAnonError("the input: two columns have the same name")
