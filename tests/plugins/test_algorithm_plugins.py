"""Algorithms of another distribution work wherever those of this package do."""

from __future__ import annotations

import json
from pathlib import Path

from distributions import PIPE, commands, install, run

STREAM = '''
from typing import Literal

import numpy as np

from stream_anon.errors import Problem
from stream_anon.policy.settings import StreamAlgorithmSettings
from stream_anon.stream.algorithm import Algorithm


class Oldest(Algorithm):
    """A row that is due leaves with the rows that have waited longest."""

    def __init__(self, schema, buffer):
        self._schema, self._buffer = schema, buffer

    def arrive(self, slots):
        self._buffer.admit(slots)
        return len(slots), None

    def complete(self, slot):
        others = self._buffer.waiting()
        others = others[others != slot]
        for size in range(self._schema.requirements.k - 1, len(others) + 1):
            group = np.concatenate([[slot], others[:size]])
            if self._schema.requirements.holds(self._buffer.rows(group)):
                return [group]
        return []

    def leave(self, slots):
        pass


class OldestSettings(StreamAlgorithmSettings):
    """The rows that have waited longest leave together."""

    name: Literal["oldest"]
    patience: int = 1

    def rules(self):
        if self.patience < 1:
            yield Problem(("patience",), "out-of-range", "nobody is that patient", "at least 1")

    def build(self, schema, buffer):
        return Oldest(schema, buffer)
'''
BATCH = '''
from typing import Literal

import numpy as np

from stream_anon.batch.partitioner import Support, unwatched
from stream_anon.core.judging.judge import Judge
from stream_anon.grammar.fields import Settings


class SlicesSettings(Settings):
    """Settings of slices: how many rows a slice has at the least."""

    name: Literal["slices"] = "slices"
    least: int = 1


class Slices:
    """Rows in the order of their quasi-identifiers, cut as soon as a slice satisfies the policy."""

    settings = SlicesSettings
    support = Support()
    nanoseconds = 0.0

    def __init__(self, settings, seed=0):
        self._least = settings.least

    def __call__(self, rows, schema, watch=unwatched):
        judge, order, found, start = Judge(rows, schema), np.lexsort(rows.qi.T[::-1]), [], 0
        for end in range(1, len(order) + 1):
            if end - start >= self._least and judge.holds(order[start:end]):
                found.append(order[start:end])
                start = end
        return found
'''
POLICY = """
version: 1
name: ages
attributes:
  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 100], snap: [5, 10]}}
  ill: {role: sensitive}
privacy:
  - {model: k_anonymity, k: 4}
  - {model: l_diversity, attribute: ill, l: 2}
algorithm: {name: oldest}
stream: {max_delay: {records: 50}}
"""
BOTH = """
[stream_anon.stream_algorithms]
oldest = own:OldestSettings
[stream_anon.batch_algorithms]
slices = own:Slices
"""


def sizes(text: str) -> list[int]:
    groups: dict[str, int] = {}
    for line in text.splitlines():
        name = json.loads(line)["_anon"]["group"]
        groups[name] = groups.get(name, 0) + 1
    return list(groups.values())


def test_algorithms_of_another_distribution(tmp_path: Path) -> None:
    install(tmp_path, "own", STREAM + BATCH, BOTH)
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (tmp_path / "odd.yaml").write_text(POLICY.replace("oldest", "oldest, patience: 0"), encoding="utf-8")
    rows = [{"age": i * 7 % 90, "ill": "abc"[i % 3]} for i in range(200)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    schema, check, anonymize, compare = commands(
        tmp_path,
        ["schema"],
        ["check", "odd.yaml"],
        ["anonymize", "-p", "policy.yaml", "in.jsonl", "-o", "out.jsonl", "-a", "slices", "--set", "least=6"],
        ["compare", "in.jsonl", "-p", "policy.yaml", "--k", "4", "--max-delay", "50", "-a", "oldest,slices", "--json"],
    )
    assert [schema[0], check[0], anonymize[0], compare[0]] == [0, 3, 0, 0], (anonymize, compare)
    assert "oldest" in schema[1]
    assert "odd.yaml:10" in check[2]
    assert "out-of-range" in check[2]
    found = sizes((tmp_path / "out.jsonl").read_text(encoding="utf-8"))
    assert min(found) >= 6
    assert sum(found) > 190
    assert {line["algorithm"] for line in json.loads(compare[1])["runs"]} == {"oldest", "slices"}
    piped = run(tmp_path, PIPE, text=(tmp_path / "in.jsonl").read_text(encoding="utf-8"))
    assert piped.returncode == 0, piped.stderr
    assert min(sizes(piped.stdout)) >= 4
    assert sum(sizes(piped.stdout)) > 190


def test_what_is_no_algorithm_is_named(tmp_path: Path) -> None:
    install(tmp_path, "odd", "Slices = 3", "[stream_anon.batch_algorithms]\nslices = odd:Slices\n")
    done = run(tmp_path, "from stream_anon.batch import ALGORITHMS; list(ALGORITHMS)")
    assert done.returncode != 0
    assert "odd, entry point stream_anon.batch_algorithms: slices: not a class with settings" in done.stderr
