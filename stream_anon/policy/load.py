"""Turns a policy file into a policy that keeps all rules, or into the list of everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from stream_anon.errors import Diagnostic, PolicyError, Problem, Severity
from stream_anon.policy.policy import Policy
from stream_anon.policy.reading.findings import IN_QUOTES, findings
from stream_anon.policy.reading.source import Source, read
from stream_anon.policy.rules import problems


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A valid policy, the file it was read from, and the folder to which the paths in it are relative."""

    policy: Policy
    source: Source
    folder: Path

    def file(self, name: str) -> Path:
        """Return the file that the policy calls `name`."""
        return self.folder / name

    def diagnostics(self, found: Iterable[Problem]) -> list[Diagnostic]:
        """Return the problems with their places in the file, in the order of the file."""
        return in_order(self.source.diagnostic(problem) for problem in found)


def load(path: Path | str, environment: Mapping[str, str] | None = None) -> LoadedPolicy:
    """Read and check a policy; raises `PolicyError` with every finding. Files the policy names are not opened here."""
    source = read(Path(path), str(path), environment)
    if not isinstance(source.data, dict):
        message = 'a policy is a mapping: "version: 1", "name: ...", "attributes: ...", "privacy: ..."'
        raise PolicyError([source.diagnostic(Problem((), "wrong-type", message))])
    try:
        policy = Policy.model_validate(source.data)
    except ValidationError as error:
        found = [(_of_variable(problem, source), key) for problem, key in findings(error, source.data)]
        raise PolicyError(in_order(source.diagnostic(problem, key) for problem, key in found)) from None
    policy._folder = Path(path).parent
    loaded = LoadedPolicy(policy, source, policy.folder)
    broken = [problem for problem in problems(policy) if problem.severity is Severity.ERROR]
    if broken:
        raise PolicyError(loaded.diagnostics(broken))
    return loaded


def _of_variable(problem: Problem, source: Source) -> Problem:
    """Name the remedy where a variable's text of digits alone, or `true`, was read as something else than text."""
    if problem.hint != IN_QUOTES or not source.from_environment(problem.path):
        return problem
    return replace(problem, hint='put quotes around its ${NAME} here in the policy, then it is text: "${NAME}"')


def load_policy(path: Path | str, environment: Mapping[str, str] | None = None) -> Policy:
    """Read and check a policy file; `${NAME}` in it is taken from the environment.

    Raises `PolicyError` with everything that is wrong, each finding with its line, its reason and a remedy.
    """
    return load(path, environment).policy


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """By place, each finding once."""
    return sorted(dict.fromkeys(diagnostics), key=lambda d: (d.file, d.line, d.column, d.code, d.message))
