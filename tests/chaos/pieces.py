"""The kill test at length: in pieces, each with a broker and topics of its own, kept in a file, resumed and summed.

Whatever ends it, the pieces that are in the file count: called again with the same file it does what is missing.
Prints the sum of all pieces as one JSON line.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from chaos import CLIENTS, HERE, MUST_BE_ZERO

KINDS = [*CLIENTS, "mixed"]
SCENES = {"one": [], "line": ["--line"], "three": ["--brokers", "3"], "unclean": ["--brokers", "3", "--unclean"]}
"""One broker; a bad line before it; three brokers; three that may elect a leader which was left behind."""


def done(file: Path) -> list[dict[str, Any]]:
    """The pieces that were run."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def total(pieces: list[dict[str, Any]]) -> dict[str, object]:
    """The sum of all pieces, and by client how many failures each saw."""
    counts = ("kills", "records", "published", "uncommitted_records", "left_for_successor", *MUST_BE_ZERO)
    events: Counter[str] = Counter()
    clients: Counter[str] = Counter()
    scenes: Counter[str] = Counter()
    for piece in pieces:
        events.update(piece["events"])
        clients[piece["client"]] += piece["kills"]
        scenes[piece["scene"]] += piece["kills"]
    return {
        "pieces": len(pieces),
        **{name: sum(piece[name] for piece in pieces) for name in counts},
        "events": dict(events),
        "kills_by_client": dict(clients),
        "kills_by_scene": dict(scenes),
        "kills_with_ledger_topic": sum(piece["kills"] for piece in pieces if piece["ledger_topic"]),
        "not_consuming": sum(not piece["still_consuming"] for piece in pieces),
    }


def play(options: argparse.Namespace, number: int, kills: int) -> bytes:
    """Run one piece and return its result as a line; clients change from piece to piece, then scenes."""
    command = [sys.executable, str(HERE / "chaos.py"), "--seed", str(options.seed + number), "--kills", str(kills)]
    command += ["--client", options.client or KINDS[number % len(KINDS)], "--rate", str(options.rate)]
    command += SCENES[options.scenes[number // len(KINDS) % len(options.scenes)]]
    command += ["--ledger"] if options.ledger else []
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="keeps the pieces, one JSON line each")
    parser.add_argument("--kills", type=int, default=300, help="failures in all")
    parser.add_argument("--piece", type=int, default=20, help="failures of one piece")
    parser.add_argument("--beside", type=int, default=1, help="pieces at once: most of the time they wait")
    parser.add_argument("--client", choices=KINDS, help="one kind of client alone; else all in turns")
    parser.add_argument("--scenes", nargs="+", choices=list(SCENES), default=["one", "line", "three"])
    parser.add_argument("--rate", type=float, default=1_100)
    parser.add_argument("--seed", type=int, default=1, help="that of the first piece")
    parser.add_argument("--ledger", action="store_true")
    options = parser.parse_args()
    pieces = done(options.file)
    number, missing = len(pieces), options.kills - sum(piece["kills"] for piece in pieces)
    with ThreadPoolExecutor(options.beside) as beside:
        sizes = [min(options.piece, missing - before) for before in range(0, missing, options.piece)]
        playing = [beside.submit(play, options, number + place, kills) for place, kills in enumerate(sizes)]
        for piece in as_completed(playing):
            with options.file.open("ab") as file:
                file.write(piece.result())
    sys.stdout.write(json.dumps(total(done(options.file))) + "\n")


if __name__ == "__main__":
    main()
