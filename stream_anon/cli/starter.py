"""Write the demo's policy and some of its records to a folder, as a place to start from; overwrites nothing."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from stream_anon.cli import output
from stream_anon.demo import admissions, policy_text
from stream_anon.errors import StreamAnonError

_RECORDS = 1000


class SaveError(StreamAnonError):
    """A file could not be written, or already exists."""


def save(folder: Path, seed: int) -> None:
    """Write `policy.yaml` and `records.jsonl`."""
    policy, records = folder / "policy.yaml", folder / "records.jsonl"
    lines = b"".join(record + b"\n" for record in islice(admissions(seed), _RECORDS))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in ((policy, policy_text().encode()), (records, lines)):
            with path.open("xb") as file:
                file.write(content)
    except FileExistsError as error:
        raise SaveError(f"{error.filename}: already exists; name another folder") from None
    except OSError as error:
        raise SaveError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None
    named, sample = output.quoted(policy), output.quoted(records)
    output.say(f"wrote {policy} and {records} — next: stream-anon check {named} --data {sample}", style="bold green")
    output.say(f"then: stream-anon pipe -p {named} < {sample}")
