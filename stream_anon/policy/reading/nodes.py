"""Builds a tree of YAML nodes that know their place; refuses what no policy needs: tags, cycles, a second document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError

from stream_anon.errors import Diagnostic, PolicyError
from stream_anon.policy.reading.scalars import resolve, substitute

MAX_DEPTH = 64
"""Levels. The deepest useful policy is an inline tree of a dozen levels; Python's own stack ends near a thousand."""


class Place(NamedTuple):
    """Where a word stands: line and column from 1, and how many characters it takes."""

    line: int
    column: int
    width: int


START = Place(1, 1, 1)


@dataclass(slots=True)
class Node:
    """A scalar, a list or a mapping of the file. An alias is the node it refers to."""

    place: Place
    value: str | int | float | bool | list[Node] | dict[str, Node] | None
    keys: dict[str, Place] = field(default_factory=dict)
    from_environment: bool = False


def build(text: str, file: str, environment: Mapping[str, str]) -> Node:
    """Return the tree of the one document in `text`; all mistakes that do not end the reading are reported together."""
    return _Builder(text, file, environment).document()


class _Builder:
    def __init__(self, text: str, file: str, environment: Mapping[str, str]) -> None:
        self._text = text
        self._file = file
        self._environment = environment
        self._events = self._parse()
        self._anchors: dict[str, Node] = {}
        self._found: list[Diagnostic] = []

    def document(self) -> Node:
        """Return the only document of the file."""
        root = Node(START, None)
        documents = 0
        for event in self._events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    self._fail(
                        "second-document", "a policy is one document", _place(event), 'remove what follows "---"'
                    )
            elif kind not in ("StreamStartEvent", "DocumentEndEvent", "StreamEndEvent"):
                root = self._node(event, depth=0)
        if self._found:
            raise PolicyError(self._found)
        return root

    def _parse(self) -> Iterator[Any]:
        try:
            yield from YAML(typ="safe", pure=True).parse(self._text)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = START if mark is None else Place(mark.line + 1, mark.column + 1, 1)
            self._fail(
                "syntax",
                _plain(error.problem or error.context or "not YAML"),
                place,
                self._syntax_hint(place, str(error.problem)),
            )
        except ReaderError as error:
            before = self._text[: error.position]
            place = Place(before.count("\n") + 1, len(before) - before.rfind("\n"), 1)
            self._fail("syntax", "a control character", place, "remove it")
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, AssertionError):
            # The parser stumbles over some nonsense, such as the escape "\UFFFFFFFF", without saying where.
            self._fail("syntax", "this is not YAML", START, "look for a stray escape or directive")

    def _syntax_hint(self, place: Place, problem: str) -> str:
        line = self._text.split("\n")[place.line - 1 :][:1]
        if "${" in "".join(line):
            return 'inside { } or [ ], put ${NAME} in quotes: "${NAME}"'
        if "\t" in "".join(line):
            return "indent with spaces, not tabs"
        if found := re.search(r"expected ',' or '([]}])'", problem):
            return f"a bracket is open, here or above: close it with {found[1]}"
        return "a text with : or # in it needs quotes; what belongs together is indented alike"

    def _node(self, event: Any, depth: int) -> Node:
        place, kind = _place(event), type(event).__name__
        if depth > MAX_DEPTH:
            self._fail("too-deep", f"nested more than {MAX_DEPTH} levels deep", place)
        if kind == "AliasEvent":
            if event.anchor not in self._anchors:
                self._fail("unknown-alias", "no finished anchor has this name", place, "define it above with &")
            return self._anchors[event.anchor]
        if getattr(event, "tag", None) is not None and str(event.tag) not in ("None", "!"):
            self._add("tag", "tags (!) are not part of a policy", place, "use quotes for text, none for numbers")
        if kind == "ScalarEvent":
            node = self._scalar(event, place)
        elif kind == "SequenceStartEvent":
            node = Node(place, [self._node(child, depth + 1) for child in self._until("SequenceEndEvent")])
        else:
            node = self._mapping(place, depth)
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _mapping(self, place: Place, depth: int) -> Node:
        children: dict[str, Node] = {}
        node = Node(place, children)
        for event in self._until("MappingEndEvent"):
            where = _place(event)
            if type(event).__name__ != "ScalarEvent" or not event.value:
                self._fail("bad-key", "a key must be a word", where)
            key = self._checked(event.value, where)
            child = self._node(next(self._events), depth + 1)
            if key in children:
                self._add(
                    "duplicate-key", f'"{key}" is already on line {node.keys[key].line}', where, "keep one of them"
                )
            else:
                node.keys[key], children[key] = where, child
        return node

    def _scalar(self, event: Any, place: Place) -> Node:
        text = self._checked(event.value, place)
        result = substitute(text, self._environment)
        for problem in result.problems:
            self._add(problem.code, problem.message, place, problem.hint)
        plain = event.style in (None, "")
        replaced = self._checked(result.text, place)
        value = resolve(replaced) if plain else replaced
        return Node(place, value, from_environment=result.from_environment)

    def _checked(self, text: str, place: Place) -> str:
        if any("\ud800" <= character <= "\udfff" or character == "\0" for character in text):
            self._fail("syntax", "half a character, or a NUL", place, "remove the escape")
        return text

    def _until(self, end: str) -> Iterator[Any]:
        for event in self._events:
            if type(event).__name__ == end:
                return
            yield event

    def _add(self, code: str, message: str, place: Place, hint: str = "") -> None:
        self._found.append(Diagnostic(code, message, self._file, *place, hint))

    def _fail(self, code: str, message: str, place: Place, hint: str = "") -> None:
        self._add(code, message, place, hint)
        raise PolicyError(self._found)


def _place(event: Any) -> Place:
    start, end = event.start_mark, event.end_mark
    width = end.column - start.column if end.line == start.line else 1
    return Place(start.line + 1, start.column + 1, max(width, 1))


def _plain(problem: str) -> str:
    return re.sub(r"\s+", " ", problem).strip()
