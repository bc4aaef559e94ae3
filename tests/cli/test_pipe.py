from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pytest

from stream_anon.cli import run_command as run
from stream_anon.cli.interrupt import Interrupt
from stream_anon.demo import admissions, policy_text

COMMAND = [sys.executable, "-m", "stream_anon", "pipe", "-p", "policy.yaml"]
PATIENCE = 120
"""Seconds until a test gives up; compiling may come first."""

Start = Callable[..., subprocess.Popen[bytes]]


def records(count: int) -> list[bytes]:
    return [record + b"\n" for record in islice(admissions(1), count)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_policy(tmp_path)
    return tmp_path


def write_policy(folder: Path, stream: str = "{max_delay: {time: 60s}}", **changes: str) -> None:
    text = policy_text().replace("stream: {max_delay: {time: 3s}}", f"stream: {stream}\nsecret: ${{PIPE_SECRET}}")
    for old, new in changes.items():
        text = text.replace(old, new)
    assert stream in text
    (folder / "policy.yaml").write_text(text)


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def begin(*options: str, **settings: Any) -> subprocess.Popen[bytes]:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        environment = os.environ | {"PIPE_SECRET": "made up, and long enough to be taken for one"}
        process = subprocess.Popen([*COMMAND, *options], cwd=folder, env=environment, **(pipes | settings))
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()
        for file in (process.stdin, process.stdout, process.stderr):
            if file is not None:
                with contextlib.suppress(BrokenPipeError):
                    file.close()


def send(process: subprocess.Popen[bytes], *lines: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(b"".join(lines))
    process.stdin.flush()


def receive(file: IO[bytes] | None, count: int) -> list[bytes]:
    """So many lines, as soon as they are there; fewer at the end."""
    assert file is not None
    text = b""
    while text.count(b"\n") < count:
        assert select.select([file], [], [], PATIENCE)[0], "nothing came"
        chunk = os.read(file.fileno(), 1 << 16)
        if not chunk:
            break
        text += chunk
    return text.splitlines()


def groups(output: bytes) -> Counter[str]:
    return Counter(json.loads(line)["_anon"]["group"] for line in output.splitlines())


def test_lines_go_in_and_groups_come_out(start: Start) -> None:
    process = start()
    out, err = process.communicate(b"".join(records(300)), PATIENCE)
    assert process.returncode == 0
    sizes = groups(out)
    assert sizes.total() + int(err.split(b" suppressed")[0].split()[-1]) == 300
    assert min(sizes.values()) >= 5
    told = [line for line in err.decode().splitlines() if not line.startswith("compiling")]
    assert told[0].startswith("300 records in: ")
    assert told[0].endswith("0 rejected")
    assert told[1] == "300 lines: 300 records"
    assert told[2].startswith("information lost: 0.")
    assert told[3].endswith("s at most, bound 60 s")
    assert told[-1].startswith("next: ")
    assert len(told) == 5


REFUSED = [
    # remark, line, code, column
    ("broken", b"{hidden7", "not_json", ""),
    ("not text", b"\xff\xfe", "not_json", ""),
    ("not an object", b'["hidden7"]', "not_object", ""),
    ("a wrong type", b'{"birth_year": "hidden7"}', "wrong_type", "birth_year"),
    ("nothing in it", b"{}", "missing", "birth_year"),
    ("huge", b'{"name": "' + b"hidden7" * 400_000 + b'"}', "too_large", ""),
    ("an unknown value", records(1)[0].strip().replace(b'"zip":"', b'"zip":"hidden7'), "unknown", "zip"),
]


def test_a_refused_line_is_told_by_number_code_and_column_only(start: Start, folder: Path) -> None:
    text = b"".join([*records(20), b"\n", *[line + b"\n" for _, line, _, _ in REFUSED], *records(20)])
    letters = [{"line": 22 + i, "code": code, "column": column} for i, (_, _, code, column) in enumerate(REFUSED)]

    process = start("--json")
    out, err = process.communicate(text, PATIENCE)
    assert process.returncode == 0
    assert b"hidden7" not in out + err
    *told, summary = [json.loads(line) for line in err.splitlines()]
    assert told == letters
    assert summary["consumed"] == 40 + len(REFUSED)
    assert summary["published"] + summary["suppressed"] == 40
    assert summary["published"] == len(out.splitlines())
    assert summary["rejected"] == Counter(code for _, _, code, _ in REFUSED)

    (folder / "dead.jsonl").write_text("kept\n")
    process = start("--dead-letters", "dead.jsonl", "--quiet")
    assert process.communicate(text, PATIENCE)[1] == b""
    kept, *told = (folder / "dead.jsonl").read_text().splitlines()
    assert kept == "kept"
    assert [json.loads(line) for line in told] == letters


def test_refused_lines_in_words_and_a_shorter_limit(start: Start) -> None:
    process = start("--max-line", "20")
    _, err = process.communicate(b"{\n" + b'{"birth_year": "x"}\n' + b"{}" + b" " * 19, PATIENCE)
    told = [line for line in err.decode().splitlines() if not line.startswith("compiling")]
    assert told == [
        "line 1: rejected: not_json",
        "line 2: rejected: wrong_type (birth_year)",
        "line 3: rejected: too_large",
        "3 records in: 0 published in 0 groups, 0 suppressed, 3 rejected (1 not_json, 1 too_large, 1 wrong_type)",
        "3 lines: 3 records",
        "next: find out why lines were rejected: stream-anon check policy.yaml --data SAMPLE",
        "error: every record was rejected, most as not_json: the input is not what the policy describes",
    ]
    assert process.returncode == 5


def test_many_refused_lines_do_not_fill_the_terminal(start: Start) -> None:
    err = start().communicate(b"1\n" * 5_000, PATIENCE)[1].decode().splitlines()
    told = [line for line in err if not line.startswith("compiling")]
    assert told[19] == "line 20: rejected: not_object"
    assert told[20].startswith("more are rejected; from here on they are only counted: --dead-letters FILE")
    assert len(told) == 25
    assert told[-2] == "next: no line was a JSON object; if the input is CSV, pass --csv"


def test_a_reader_that_leaves_ends_it_quietly(start: Start, folder: Path) -> None:
    write_policy(folder, "{max_delay: {records: 50}}")
    process = start("--quiet")
    assert process.stdout is not None
    send(process, *records(200))
    assert len(receive(process.stdout, 1)) >= 1
    process.stdout.close()
    try:
        send(process, *records(2000))
        assert process.stdin is not None
        process.stdin.close()
    except BrokenPipeError:
        pass
    assert process.wait(PATIENCE) == 1
    assert process.stderr is not None
    assert process.stderr.read() == b""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_publishes_what_is_inside(number: signal.Signals, code: int, start: Start) -> None:
    process = start("--json")
    send(process, *records(60), b"broken\n")
    assert json.loads(receive(process.stderr, 1)[0])["line"] == 61
    process.send_signal(number)
    lines = receive(process.stdout, 10_000)
    assert process.wait(PATIENCE) == code
    summary = json.loads(receive(process.stderr, 1)[0])
    assert summary["published"] == len(lines) >= 50
    assert summary["published"] + summary["suppressed"] == 60


def test_the_second_signal_ends_at_once() -> None:
    calls: list[str] = []
    interrupt = Interrupt(lambda: calls.append("stop"))
    interrupt(signal.SIGINT, None)
    assert calls == ["stop"]
    with pytest.raises(KeyboardInterrupt):
        interrupt(signal.SIGINT, None)


def test_deadlines_fire_while_nothing_comes(start: Start, folder: Path) -> None:
    write_policy(folder, "{max_delay: {time: 300ms}}")
    process = start("--json")
    send(process, *records(10), b"broken\n")
    lines = receive(process.stdout, 5)
    assert process.poll() is None
    for line in lines:
        assert json.loads(line)["_anon"]["subjects"] >= 5
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def test_a_slow_reader_holds_the_input_up_and_loses_nothing(start: Start, folder: Path) -> None:
    write_policy(folder, "{max_delay: {records: 100}}")
    process = start("--json")
    text = memoryview(b"".join(records(8_000)))
    assert process.stdin is not None
    assert process.stdout is not None
    os.set_blocking(process.stdin.fileno(), False)
    send(process, b"broken\n")
    receive(process.stderr, 1)
    sent = 0
    while select.select([], [process.stdin], [], 1.0)[1]:
        sent += os.write(process.stdin.fileno(), text[sent : sent + 65_536])
        assert sent < len(text), "it took everything although nobody reads"
    assert sent < 1 << 20
    os.set_blocking(process.stdin.fileno(), True)
    out, err = process.communicate(text[sent:], PATIENCE)
    summary = json.loads(err)
    assert summary["consumed"] == 8_001
    assert summary["published"] == len(out.splitlines())
    assert summary["published"] + summary["suppressed"] == 8_000


def test_a_full_buffer_lets_the_oldest_go_early(start: Start, folder: Path) -> None:
    write_policy(folder, "{max_delay: {time: 1h}, max_buffer: 40}")
    process = start("--json")
    out, err = process.communicate(b"".join(records(500)), PATIENCE)
    assert process.returncode == 0
    summary = json.loads(err)
    assert summary["published"] + summary["suppressed"] == 500
    assert summary["published"] == len(out.splitlines()) > 400
    assert summary["smallest_group_people"] >= 5
    assert summary["hurried_groups"] > 0
    assert summary["late"] == 0


def test_a_buffer_full_of_held_rows_does_not_stop_it(start: Start, folder: Path) -> None:
    write_policy(folder, "{max_delay: {records: 10}, max_buffer: 40, on_deadline: hold}")
    process = start("--json")
    same = [json.dumps(json.loads(record) | {"diagnosis": "flu"}).encode() + b"\n" for record in records(200)]
    out, err = process.communicate(b"".join(same), PATIENCE)
    assert (process.returncode, out) == (0, b"")
    assert json.loads(err)["suppressed"] == 200


def test_a_full_disk_is_told(start: Start) -> None:
    with open("/dev/full", "wb") as full:
        process = start("--quiet", stdout=full)
        _, err = process.communicate(b"".join(records(50)), PATIENCE)
    assert process.returncode == 1
    assert err == b"error: an output cannot be written: No space left on device\n"


def test_no_secret_is_told(start: Start, folder: Path) -> None:
    text = (folder / "policy.yaml").read_text()
    (folder / "policy.yaml").write_text(text.replace("secret: ${PIPE_SECRET}", ""))
    process = start(stdin=subprocess.DEVNULL)
    err = process.communicate(timeout=PATIENCE)[1].decode().splitlines()
    assert err[0] == "the policy has no secret: group ids will differ from run to run"
    assert err[-1] == "next: stream-anon pipe -p policy.yaml < RECORDS"


USAGE = [
    # remark, options, exit code, told
    ("no policy", [], 2, "Missing option '--policy'"),
    ("no such policy", ["-p", "nowhere.yaml"], 3, "missing-file"),
    ("a limit for lines below any record", ["-p", "policy.yaml", "--max-line", "1"], 2, "--max-line"),
    (
        "a folder that is not there",
        ["-p", "policy.yaml", "--dead-letters", "no/x"],
        1,
        "no/x: cannot be written: No such",
    ),
]


@pytest.mark.parametrize(("options", "code", "told"), [u[1:] for u in USAGE], ids=[u[0] for u in USAGE])
def test_usage(
    options: list[str],
    code: int,
    told: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PIPE_SECRET", "made up, and long enough to be taken for one")
    assert run(["pipe", *options]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert told in captured.err
