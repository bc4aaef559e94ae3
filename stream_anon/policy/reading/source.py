"""A policy file as plain data that remembers where each word stands; knows nothing of what the words mean."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stream_anon.errors import Diagnostic, PolicyError, Problem
from stream_anon.grammar.files import POLICY_LIMIT, read_text
from stream_anon.policy.reading.nodes import START, Node, Place, build

MAX_NODES = 200_000
"""Values after aliases are written out. An alias of aliases can name billions of values in ten lines."""

_REMEDY = "name the policy's file; stream-anon init DATA proposes one"


class Source:
    """The text of a policy, its values as plain Python, and the place of each key and value.

    >>> source = Source("name: a\\nprivacy:\\n  - {k: 5}\\n", "policy.yaml", {})
    >>> source.data
    {'name': 'a', 'privacy': [{'k': 5}]}
    >>> source.locate(("privacy", 0, "k"))
    Place(line=3, column=9, width=1)
    """

    def __init__(self, text: str, file: str, environment: Mapping[str, str]) -> None:
        self.file = file
        self.text = re.split(r"\r\n|\r|\n", text)
        self._root = build(text, file, environment)
        self.data = self._plain()

    def locate(self, path: tuple[str | int, ...], key: bool = False) -> Place:
        """Return the place of the value at `path`, or of its key; where there is none, that of the nearest parent.

        A list or mapping is shown by its key, because its first character says little.
        """
        node, place = self._root, START
        for depth, step in enumerate(path, start=1):
            child = _child(node, step)
            if child is None:
                return place
            named = node.keys.get(step) if isinstance(step, str) else None
            scalar = not isinstance(child.value, list | dict)
            last = depth == len(path)
            place = child.place if named is None or (scalar and last and not key) else named
            if named is None and not scalar:
                place = place._replace(width=1)
            node = child
        return place

    def from_environment(self, path: tuple[str | int, ...]) -> bool:
        """Whether any part of the value at `path` was taken from the environment."""
        node: Node | None = self._root
        for step in path:
            node = _child(node, step) if node else None
        return node is not None and node.from_environment

    def diagnostic(self, problem: Problem, key: bool = False) -> Diagnostic:
        """Return the problem, with the place of the words it is about."""
        place = self.locate(problem.path, key)
        return Diagnostic(problem.code, problem.message, self.file, *place, problem.hint, problem.severity)

    def line(self, number: int) -> str:
        """Return the text of one line, counted from 1; nothing where there is no such line."""
        return self.text[number - 1] if 0 < number <= len(self.text) else ""

    def _plain(self) -> Any:
        count = 0

        def plain(node: Node) -> Any:
            nonlocal count
            count += 1
            if count > MAX_NODES:
                message = f"more than {MAX_NODES:,} values once aliases are written out"
                raise PolicyError([Diagnostic("too-many-values", message, self.file, *node.place)])
            if isinstance(node.value, dict):
                return {key: plain(child) for key, child in node.value.items()}
            if isinstance(node.value, list):
                return [plain(child) for child in node.value]
            return node.value

        return plain(self._root)


def read(path: Path, shown: str, environment: Mapping[str, str] | None = None) -> Source:
    """Read a policy file; `${NAME}` is looked up in `environment`, by default that of the process."""
    text = read_text(path, shown, POLICY_LIMIT, _REMEDY)
    return Source(text, shown, os.environ if environment is None else environment)


def _child(node: Node, step: str | int) -> Node | None:
    if isinstance(node.value, dict) and isinstance(step, str):
        return node.value.get(step)
    if isinstance(node.value, list) and isinstance(step, int) and 0 <= step < len(node.value):
        return node.value[step]
    return None
