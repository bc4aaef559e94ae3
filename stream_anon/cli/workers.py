"""The part of `run` that starts several workers and reports the status of all of them."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import typer

from stream_anon.cli import output
from stream_anon.cli.interrupt import interruptible
from stream_anon.cli.run_view import LogFormat, logged
from stream_anon.core.schema import Schema
from stream_anon.errors import StreamAnonError
from stream_anon.observe.live.status import Status


def commands(policy: Path, workers: int, more: list[str], instance: str | None, ports: list[int]) -> list[list[str]]:
    """Return one command line per worker. A slot keeps its name over restarts, so a new worker fences its predecessor.

    >>> commands(Path("p.yaml"), 1, [], "blue", [9465])[0][2:]
    ['stream_anon', 'run', '--policy', 'p.yaml', '--slot', 'blue-0', '--status-port', '9465', '--instance', 'blue-0']
    """
    name = instance or f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
    result = []
    for number in range(workers):
        command = [sys.executable, "-m", "stream_anon", "run", "--policy", str(policy), "--slot", f"{name}-{number}"]
        command += ["--status-port", str(ports[number])]
        command += ["--instance", f"{name}-{number}"] if instance else []
        result.append([*command, *more])
    return result


def supervise(
    policy: Path,
    schema: Schema,
    workers: int,
    more: list[str],
    instance: str | None,
    place: tuple[str, int],
    log_format: LogFormat,
) -> None:
    """Run the workers until a signal stops them; the last exit code decides how the command ends."""
    from stream_anon.observe.live.board import Board
    from stream_anon.observe.live.facts import facts_of
    from stream_anon.observe.merged import Workers
    from stream_anon.observe.server import StatusServer
    from stream_anon.worker.supervisor import Supervisor

    status_host, status_port = place
    ports = [status_port + 1 + number if status_port else 0 for number in range(workers)]
    if max(ports) > 65_535:
        raise StreamAnonError(f"--status-port {status_port} leaves no room for {workers} ports after it")
    supervisor = Supervisor(commands(policy, workers, more, instance, ports))
    whole, board = Workers(ports, lambda: supervisor.running, lambda: supervisor.restarts), Board(facts_of(schema))
    server = None

    def status() -> Status:
        return whole.status(board.status(), supervisor.stopping)

    if status_port:
        server = StatusServer(
            whole.registry,
            whole.live,
            whole.ready,
            status_host,
            status_port,
            why=whole.why,
            status=status,
        ).start()
        output.say(f"live page: {server.url} — also /api/status, /metrics, /livez, /readyz")
    output.say(f"{workers} workers — next: stop all with SIGTERM")
    with interruptible(supervisor.stop) as interrupt:
        with logged(status, log_format, summaries=bool(status_port)):
            code = supervisor.run()
        if server is not None:
            server.close()
        if code:
            raise typer.Exit(code)
        interrupt.leave()
