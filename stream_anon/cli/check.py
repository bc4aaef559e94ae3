"""`stream-anon check`: check a policy before it meets a stream; changes and publishes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from stream_anon.cli import output
from stream_anon.cli.options import Encoding
from stream_anon.cli.prepare import prepare
from stream_anon.core.decode import Rejection
from stream_anon.core.lint import warnings
from stream_anon.core.schema import Schema
from stream_anon.errors import Diagnostic, PolicyError, Problem, Severity, StreamAnonError, Unsupported
from stream_anon.insight.sample import letters, read_sample, rejections_of
from stream_anon.policy import LoadedPolicy


def check(
    policy: Annotated[Path, typer.Argument(help="The policy file (YAML).", show_default=False)],
    data: Annotated[
        Path | None,
        typer.Option("--data", help="A sample: JSON lines, .csv or .parquet; its first 10,000 rows are read."),
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", help="A batch algorithm: can it honour the policy, and what does it give away?"),
    ] = None,
    encoding: Encoding = None,
    strict: Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON on stdout.")] = False,
) -> None:
    """Check a policy: its words, the rules between its parts, the files it names; warn of what is likely a mistake.

    Every finding has its place, a caret under the word and, where there is one, a remedy. No value of the sample is
    ever shown. Where the policy names a schema registry, it is asked whether the output would break its subject.

    [bold]Examples[/bold]

        stream-anon check policy.yaml

        stream-anon check policy.yaml --data sample.jsonl --strict
    """
    name = str(policy)
    rejected: list[Rejection] = []
    asked: dict[str, Any] = {}
    try:
        loaded, compiled = prepare(policy)
        name = f"policy {loaded.policy.name}"
        sample = read_sample(data, encoding=encoding) if data else None
        found = loaded.diagnostics(warnings(loaded, compiled, sample.rows if sample else None))
        asked, broken = _of_registry(compiled)
        found += loaded.diagnostics(broken)
        found += loaded.diagnostics(_of_options(loaded))
        if algorithm is not None:
            found += _of_algorithm(algorithm, compiled, str(policy))
        if sample is not None and data is not None:
            rejected, count = rejections_of(data, compiled, encoding=encoding)
            found += sample.findings(rejected, count)
    except PolicyError as error:
        found = list(error.diagnostics)
    if strict:
        found = [replace(diagnostic, severity=Severity.ERROR) for diagnostic in found]
    ok = all(diagnostic.severity is Severity.WARNING for diagnostic in found)
    if as_json:
        result = {"policy": str(policy), "ok": ok, "diagnostics": output.as_data(found)}
        more = ({"rejections": letters(rejected)} if data else {}) | ({"registry": asked} if asked else {})
        output.print_json(result | more)
    else:
        output.show(found)
        if asked:
            output.say(_told_of_registry(asked), style="" if asked["judged"] else "yellow")
        output.say(_closing(name, policy, data, encoding, found), style="bold green" if ok else "bold red")
    if not ok:
        raise typer.Exit(PolicyError.exit_code)


def _of_registry(schema: Schema) -> tuple[dict[str, Any], list[Problem]]:
    """Ask the policy's registry, if it has one, whether the output's schema may follow the newest of its subject."""
    kafka = schema.policy.kafka
    if kafka is None or kafka.registry is None:
        return {}, []
    from stream_anon.formats.messages.messages import REMEDY, Messages

    try:
        messages = Messages(schema, once=True)
        output_schema = messages.output()
        if output_schema is None:
            return {"judged": True, "subject": None}, []
        broken = messages.breaks()
    except StreamAnonError as error:
        return {"judged": False, "subject": None, "why": str(error)}, []
    if broken is None:
        return {"judged": True, "subject": output_schema.subject}, []
    message = f"the schema of this policy's output would break {broken[0]}: {broken[1]}"
    asked = {"judged": True, "subject": broken[0]}
    return asked, [Problem(("kafka", "output"), "breaks-subject", message, REMEDY)]


def _told_of_registry(asked: Mapping[str, Any]) -> str:
    if not asked["judged"]:
        return f"not judged: whether the output's schema fits its subject ({asked['why']})"
    if asked["subject"] is None:
        return "schema registry: it answers; the output is plain JSON"
    return f"schema registry: the output's schema was held against {asked['subject']}"


def _of_options(loaded: LoadedPolicy) -> list[Problem]:
    """Return the options of the Kafka client that nobody knows by that name, and those that may not be set."""
    from stream_anon.kafka.option_names import dotted, misspelt

    options = loaded.policy.kafka.options if loaded.policy.kafka else {}
    found = []
    for name, meant in misspelt(options).items():
        why = f'no Kafka client knows the option "{name}"'
        found.append(Problem(("kafka", "options", name), "unknown-option", why, f'did you mean "{meant}"?'))
    try:
        dotted(options)
    except StreamAnonError as error:
        found.append(Problem(("kafka", "options"), "decided-option", str(error), "leave it out"))
    return found


def _of_algorithm(algorithm: str, schema: Schema, file: str) -> list[Diagnostic]:
    """Return what keeps a batch algorithm from honouring the policy, and what it gives away by the way it works."""
    from stream_anon.batch.algorithms import ALGORITHMS
    from stream_anon.batch.support import check as check_support

    if algorithm not in ALGORITHMS:
        raise typer.BadParameter(f"one of {', '.join(ALGORITHMS)}", param_hint="--algorithm")
    try:
        check_support(algorithm, schema)
    except Unsupported as error:
        return [Diagnostic("algorithm", str(error), file)]
    if not ALGORITHMS[algorithm].support.by_value:
        return []
    message = f"{algorithm} chooses rows by their sensitive values, which can be read out of its groups"
    hint = "sweep and mondrian do not; stream-anon attack --minimality measures it"
    return [Diagnostic("by-value", message, file, hint=hint, severity=Severity.WARNING)]


def _closing(name: str, policy: Path, data: Path | None, encoding: str | None, found: list[Diagnostic]) -> str:
    errors = sum(diagnostic.severity is Severity.ERROR for diagnostic in found)
    remarks = len(found) - errors
    if errors:
        it = "it" if errors == 1 else "them"
        return f"{name}: {_count(errors, 'error')} — next: correct {it} and check again"
    ok = f"{name}: ok" + (f", {_count(remarks, 'warning')}" if remarks else "")
    if data is None:
        return f"{ok} — next: stream-anon check {output.quoted(policy)} --data SAMPLE"
    return f"{ok} — next: stream-anon preview {output.table(data, encoding)} --policy {output.quoted(policy)}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
