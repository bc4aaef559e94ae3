"""`stream-anon demo`: a made-up stream, anonymized live and audited at the end; Kafka only if asked."""

from __future__ import annotations

import time
import webbrowser
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.text import Text

from stream_anon import demo as hospital
from stream_anon.cli import output
from stream_anon.cli.interrupt import Interrupt, interruptible
from stream_anon.cli.kafka_setup import need_broker, need_kafka_python
from stream_anon.cli.live import Picture, Plain
from stream_anon.cli.prepare import prepare
from stream_anon.cli.ready import make_ready
from stream_anon.cli.starter import save
from stream_anon.core.kernels import COMPILED
from stream_anon.core.schema import Schema
from stream_anon.demo.performance import Performance
from stream_anon.demo.stage import Stage
from stream_anon.demo.witness import IN_TIME, Check
from stream_anon.observe.live.board import Board
from stream_anon.observe.live.facts import facts_of
from stream_anon.observe.server import StatusServer
from stream_anon.observe.tally import smallest_group
from stream_anon.report.result import NO_SUBJECT

RATE, RATE_WITHOUT_NUMBA = 1000, 100
"""Records per second that an ordinary machine keeps up with."""

SECONDS, SECONDS_TO_LOOK = 15, 120
"""How long a demo runs: at the terminal, and where a browser has to open first."""


def demo(
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            min=0.1,
            max=86_400,
            help=f"How long records arrive; {SECONDS} if not given, {SECONDS_TO_LOOK} with --open.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            min=1,
            max=1_000_000,
            help=f"Records per second; {RATE} if not given, {RATE_WITHOUT_NUMBA} where numba is not installed.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same records.")] = 1,
    policy: Annotated[
        Path | None, typer.Option("--policy", "-p", help="Another policy for the same records.", show_default=False)
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            "--save", help="Write the policy and 1,000 records into this folder, and exit.", show_default=False
        ),
    ] = None,
    kafka: Annotated[
        bool, typer.Option("--kafka", help="Run on a real Kafka, started here: a producer, a worker process, a reader.")
    ] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the live page of the run in a browser.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")] = False,
) -> None:
    """Watch a made-up stream of hospital admissions being anonymized, and see whether every promise was kept.

    The people do not exist. The result is checked by a witness that sees only what goes in and what comes out. Ends
    with 1 if it finds a promise broken.

    [bold]Examples[/bold]

        stream-anon demo

        stream-anon demo --seconds 60 --rate 10000 --json

        stream-anon demo --open

        stream-anon demo --kafka --open

        stream-anon demo --save hospital
    """
    if into is not None:
        save(into, seed)
        return
    if kafka and policy is not None:
        raise typer.BadParameter(
            f"the demo's own only: for yours, stream-anon broker -p {output.quoted(policy)}", param_hint="--policy"
        )
    rate = rate or (RATE if COMPILED else RATE_WITHOUT_NUMBA)
    seconds = seconds or (SECONDS_TO_LOOK if open_page else SECONDS)
    console = output.talk()
    run = Run(rate, seconds, seed, open_page)
    with _on_kafka(run) if kafka else _here(policy, run) as (stage, interrupt):
        console.print(Text(_opening(stage.schema), style="bold"))
        with _view(console) as view:
            stage.run(time.sleep, view)
    if interrupt.signal is not None and not stage.witness.received:
        interrupt.leave()
        return
    checks = stage.checks()
    ok = all(check.ok for check in checks)
    if as_json:
        output.print_json(_result(stage, checks, interrupted=interrupt.signal is not None))
    _summary(console, stage, checks)
    console.print(Text(_closing(checks, rate, policy, kafka), style="bold green" if ok else "bold red"))
    if not ok:
        raise typer.Exit(1)
    interrupt.leave()


class Run(NamedTuple):
    """What was asked for: records per second, seconds, the seed, and whether to open the live page."""

    rate: float
    seconds: float
    seed: int
    open_page: bool


@contextmanager
def _here(policy: Path | None, run: Run) -> Iterator[tuple[Performance, Interrupt]]:
    """Run the demo in this process."""
    schema = prepare(policy)[1] if policy else Schema.compile(hospital.policy())
    board = Board(facts_of(schema)) if run.open_page else None
    stage = Stage(schema, run.rate, run.seconds, run.seed, time.monotonic, board)
    make_ready(schema)
    with interruptible(stage.stop) as interrupt, _page(board):
        yield stage, interrupt


@contextmanager
def _page(board: Board | None) -> Iterator[None]:
    """Serve the live page while the demo runs, and open it."""
    if board is None:
        yield
        return
    server = StatusServer(None, lambda: True, lambda: True, status=board.status).start()
    _open(server.url)
    try:
        yield
    finally:
        board.end()
        server.close()


def _open(url: str) -> None:
    """Open the live page, and say where it is: not every machine has a browser."""
    output.say(f"live page: {url}")
    webbrowser.open(url)


@contextmanager
def _on_kafka(run: Run) -> Iterator[tuple[Performance, Interrupt]]:
    """Run the demo with a broker and a worker of its own, which end with it."""
    need_broker()
    need_kafka_python()
    from stream_anon.demo.cluster import DemoCluster
    from stream_anon.demo.kafka_stage import KafkaStage

    make_ready(Schema.compile(hospital.policy()))  # the reader counts losses with the same kernels as the worker
    asked = Event()
    with interruptible(asked.set) as interrupt, DemoCluster(output.say, asked) as house:
        stage = KafkaStage(house, prepare(house.policy)[1], run.rate, run.seconds, run.seed, time.monotonic, asked)
        if run.open_page:
            _open(house.page)
        with closing(stage):
            yield stage, interrupt


def _view(console: Console) -> Picture | Plain:
    moves = console.is_terminal and not console.is_dumb_terminal
    return Picture(console) if moves else Plain(console)


def _opening(schema: Schema) -> str:
    models = []
    for model in schema.policy.privacy:
        details = model.model_dump(exclude_none=True, exclude_defaults=True)
        kind = details.pop("model")
        models.append(" ".join([kind, *(f"{key}={value}" for key, value in details.items())]))
    return f"policy {schema.policy.name}: {', '.join(models)}"


def _summary(console: Console, stage: Performance, checks: list[Check]) -> None:
    for check in checks:
        verdict = ("ok", "bold green") if check.ok else ("FAILED", "bold red")
        console.print(Text.assemble(verdict, " " * (8 - len(verdict[0])), f"{check.name:<36}{check.found}"))
    tally = stage.tally
    losses = ", ".join(f"{name} {loss:.3f}" for name, loss in tally.losses.items())
    console.print(f"        {'information lost':<36}{tally.loss:.3f} of 1")
    console.print(f"          {losses}")
    if tally.counts == "records":
        console.print(Text(NO_SUBJECT, style="yellow"))
    if stage.witness.unchecked:
        console.print(f"        judged by the gate alone            {', '.join(stage.witness.unchecked)}")


def _closing(checks: list[Check], rate: float, policy: Path | None, kafka: bool) -> str:
    broken = [check.name for check in checks if not check.ok]
    if broken == [IN_TIME]:
        return (
            "too slow: this machine is too busy for this rate — next: stream-anon demo "
            f"{'--kafka ' if kafka else ''}--rate {max(rate / 4, 1):.0f}"
        )
    if broken:
        return "a promise was broken: this is a defect of stream-anon, please report it with this summary"
    if kafka:
        return "every promise kept — next: give your policy a `kafka` part, then stream-anon broker -p POLICY"
    if policy:
        return f"every promise kept — next: stream-anon pipe -p {output.quoted(policy)} < RECORDS"
    return "every promise kept — next: stream-anon demo --save hospital"


def _result(stage: Performance, checks: list[Check], interrupted: bool) -> dict[str, Any]:
    witness, tally = stage.witness, stage.tally
    return {
        "ok": all(check.ok for check in checks),
        "interrupted": interrupted,
        "seconds": round(stage.elapsed, 3),
        "records": {
            "in": witness.received,
            "out": witness.published,
            "suppressed": tally.suppressed,
            "rejected": dict(tally.rejected),
        },
        "records_per_second": round(witness.received / max(stage.elapsed, 0.001), 1),
        "groups": witness.groups,
        **smallest_group(witness.fewest_people, tally.k, tally.counts),
        "fewest_values": witness.fewest_values,
        "delay": {
            "p50": round(tally.delays.quantile(0.5), 4),
            "p99": round(tally.delays.quantile(0.99), 4),
            "max": round(witness.longest, 4),
            "bound": stage.bound,
        },
        "loss": round(tally.loss, 5),
        "loss_per_attribute": {name: round(loss, 5) for name, loss in tally.losses.items()},
        "checks": [{"name": check.name, "ok": check.ok, "found": check.found} for check in checks],
    }
