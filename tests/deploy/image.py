"""The image without Docker: its instructions carried out one by one, as written, below a folder of their own.

In the short form the packages of this test run stand in for what the image fetches, and nothing is compiled.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from monitoring import ROOT

DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
PLACES = ("/src", "/opt/stream-anon", "/wheels", "/var/cache/stream-anon", "/etc/stream-anon", "/kernels")
"""Folders of the image that lie below the folder of the test instead."""


def instructions(text: str = DOCKERFILE) -> list[tuple[str, str]]:
    """Name and words of each instruction, without comments and line breaks."""
    plain = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1].strip()) for line in plain.splitlines() if line]


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage."""
    found: list[list[tuple[str, str]]] = []
    for name, words in instructions():
        if name == "FROM":
            found.append([])
        else:
            found[-1].append((name, words))
    return found


class Image:
    """Carries out instructions with this machine's Python in place of the base image's."""

    def __init__(self, folder: Path, whole: bool) -> None:
        self.folder, self.whole = folder, whole
        base = folder / "base"
        subprocess.run([sys.executable, "-m", "venv", str(base)], check=True)
        self.environment = {"PATH": f"{base}/bin:{os.environ['PATH']}", "HOME": str(folder)}
        keep = ("PIP_", "SSL_", "XDG_CACHE_HOME")
        self.environment |= {name: value for name, value in os.environ.items() if name.startswith(keep)}
        self.environment |= {} if whole else {"STREAM_ANON_COMPILE": "never"}
        self.done: list[list[str]] = []

    def here(self, text: str) -> str:
        """A word with the image's folders below ours."""
        places = "|".join(map(re.escape, PLACES))
        return re.sub(rf"(?<![\w/])({places})(?=[/:]|$)", lambda place: f"{self.folder}{place[0]}", text)

    def build(self, stage: list[tuple[str, str]]) -> None:
        for name, words in stage:
            if name == "ENV":
                self._set(words)
            elif name == "COPY" and "--from" not in words:
                *sources, target = words.split()
                for source in sources:
                    self._copy(ROOT / source, Path(self.here(target)), into=target.endswith("/"))
            elif name == "RUN":
                self.run(json.loads(words))

    def _set(self, words: str) -> None:
        for name, value in re.findall(r"(\w+)=(\S+)", words):
            if name != "PIP_NO_CACHE_DIR":  # what was fetched before need not be fetched again
                self.environment[name] = self.here(value.replace("$PATH", self.environment["PATH"]))

    def _copy(self, source: Path, target: Path, into: bool) -> None:
        target = target / source.name if into else target
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)

    def words(self, command: list[str]) -> list[str]:
        """A command with its program found where the image would."""
        first, *rest = map(self.here, command)
        return [shutil.which(first, path=self.environment["PATH"]) or first, *rest]

    def run(self, command: list[str]) -> None:
        if not self.whole and command[-1].endswith("requirements.lock"):
            self._lend(Path(self.here(command[0])).parent.parent)
            self.done.append(command)
            return
        words = self.words(command)
        if not self.whole and "compileall" in command:
            words[-1] = os.fspath(next(Path(words[-1]).glob("python*/site-packages/stream_anon")))
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, cwd=self.folder)
        assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        self.done.append(command)

    def _lend(self, environment: Path) -> None:
        """Let a virtual environment find the packages of this test run, all but our own."""
        lent = self.folder / "lent"
        lent.mkdir()
        for found in Path(sysconfig.get_path("purelib")).iterdir():
            if "stream_anon" not in found.name and found.suffix != ".pth":
                (lent / found.name).symlink_to(found)
        (site,) = environment.glob("lib/python*/site-packages")
        (site / "lent.pth").write_text(f"{lent}\n")

    def start(self, command: list[str], **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(command),
            env=self.environment | environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            text=True,
        )


def last(name: str) -> str:
    """The words of the last instruction of a name."""
    return [words for each, words in instructions() if each == name][-1]
