"""The auditor's own reader of a policy's text: plain data, with `${NAME}` replaced from the environment."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from stream_anon.errors import Diagnostic, PolicyError

_VARIABLE = re.compile(r"\$\$\{|\$\{((?P<name>[A-Za-z_][A-Za-z0-9_]*)(:-(?P<default>[^}]*))?\})?")
_NOT_NEEDED = "secret"
"""Whoever audits has no use for the secret, and should not need to have it."""


def read_source(path: Path, environment: Mapping[str, str]) -> Any:
    """Read the data of a policy file; raise PolicyError if it is unreadable or names a variable that is not set."""
    yaml = YAML(typ="safe", pure=True)
    try:
        root = yaml.compose(path.read_text("utf-8-sig"))
        if root is None:
            return None
        unset: list[Diagnostic] = []
        for node in _scalars(root, set()):
            if "${" in node.value:
                node.value = _resolved(node, environment, str(path), unset)
                node.tag = yaml.resolver.resolve(ScalarNode, node.value, (node.style is None, True))
        if unset:
            raise PolicyError(unset)
        return yaml.constructor.construct_document(root)
    except FileNotFoundError:
        raise PolicyError([Diagnostic("missing-file", "there is no such file", str(path))]) from None
    except OSError:
        raise refusal(path, "missing-file", "the policy cannot be read") from None
    except (YAMLError, UnicodeDecodeError):
        raise refusal(path, "not-yaml", "the policy is not valid YAML") from None


def refusal(path: Path, code: str, message: str) -> PolicyError:
    """Return the error for a policy that the auditor cannot use."""
    return PolicyError(
        [Diagnostic(code, message, str(path), hint=f"stream-anon check {shlex.quote(str(path))} tells more")]
    )


def _scalars(node: Node, seen: set[int], top: bool = True) -> Iterator[ScalarNode]:
    """Yield every scalar of the policy once, except those in sections the auditor does not need."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, ScalarNode):
        yield node
    elif isinstance(node, SequenceNode):
        for child in node.value:
            yield from _scalars(child, seen, top=False)
    elif isinstance(node, MappingNode):
        for key, child in node.value:
            if not (top and key.value == _NOT_NEEDED):
                yield from _scalars(child, seen, top=False)


def _resolved(node: ScalarNode, environment: Mapping[str, str], file: str, unset: list[Diagnostic]) -> str:
    """Replace the variables in a scalar; `$${` stands for a plain `${`, and an empty variable counts as unset."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        name = match["name"]
        found = (environment.get(name) or match["default"]) if name else None
        if found is None:
            message = f"the environment variable {name} is not set" if name else '"${" does not begin a variable'
            hint = f"export {name}=..., or give a default: ${{{name}:-...}}" if name else "write ${NAME}, or $${"
            place = (node.start_mark.line + 1, node.start_mark.column + 1, max(len(node.value), 1))
            unset.append(Diagnostic("unset-variable" if name else "bad-variable", message, file, *place, hint))
            return ""
        return found

    return _VARIABLE.sub(value, node.value)
