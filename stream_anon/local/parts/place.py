"""The folder in which parts wait: its owner's alone, removed with the run, or kept so that the run can be continued."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from stream_anon.errors import StreamAnonError

_JOB = "job"


class SpillError(StreamAnonError):
    """The folder for parts cannot be used."""

    exit_code = 2


def job_digest(data: Path, words: list[str]) -> str:
    """Return a digest of a file, by name, size and times, and of all that decides about its groups."""
    facts = data.stat()
    told = [str(data.resolve()), *map(str, (facts.st_size, facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns)), *words]
    return hashlib.sha256("\0".join(told).encode("utf-8", "surrogatepass")).hexdigest()


@contextmanager
def private_folder(beside: Path) -> Iterator[Path]:
    """Make a folder beside a file, on the same disk, and remove it with all it holds, whatever happens."""
    folder = Path(mkdtemp(prefix=f".{beside.name}.", suffix=".parts", dir=beside.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def kept_folder(folder: Path, digest: str) -> Iterator[Path]:
    """Use a folder that stays if the run fails, so that the same run can be continued; another is refused."""
    folder.mkdir(mode=0o700, exist_ok=True)
    facts = folder.stat()
    if facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise SpillError(f"{folder}: others can read or change it, and it will hold raw values: chmod 700 {folder}")
    with _locked(folder):
        job = folder / _JOB
        if not job.exists():
            if any(folder.iterdir()):
                raise SpillError(f"{folder}: is not empty and holds no earlier run; name another folder")
            job.write_text(digest)
        elif job.read_text() != digest:
            raise SpillError(
                f"{folder}: holds the run of another table, policy, secret or algorithm, or of another version; "
                "name another folder, or remove it"
            )
        yield folder
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder: two runs in it would both add rows to its files. Processes that were forked hold it as well."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SpillError(f"{folder}: another run works in it; wait for its end, or name another folder") from None
        yield
    finally:
        os.close(held)
