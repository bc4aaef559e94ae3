"""Every benchmark that needs no broker, in short: it runs to its end and tells what it measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SHORT = [
    ("encode.py", ["--seconds", "0"], "rows_per_cpu_second"),
    (
        "stream.py",
        ["--rows", "3000", "--k", "5", "--l", "1", "--delay", "300", "--algorithm", "cail", "--seconds", "0"],
        "rows_per_cpu_second",
    ),
    ("stream.py", ["--skew", "--rows", "1500"], "published"),
    ("windows.py", ["--rows", "4000", "--delay", "1000"], "kept_per_row"),
    (
        "minimality.py",
        ["--algorithm", "mondrian", "--model", "distinct", "--rare", "0.2", "--rows", "500", "--replays", "0"],
        "posterior",
    ),
    ("soak.py", ["--rows", "40000"], "rows"),
    ("audit.py", ["--records", "20000"], "records_per_cpu_second"),
    ("batch.py", ["--rows", "2000", "--only", "mondrian"], "ncp"),
    ("large.py", ["--rows", "2000", "--values", "50", "--algorithm", "mondrian"], "peak_mb"),
    ("attacks.py", ["--rows", "1500", "--k", "5", "--tries", "20"], "isolation"),
]

POLICY = """
version: 1
name: given
attributes:
  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 99], snap: [5, 10]}}
  ill: {role: sensitive}
privacy:
  - {model: k_anonymity, k: 7}
  - {model: lc_anonymity, attribute: ill, l: 3, c: 0.4}
stream: {max_delay: {records: 120}}
algorithm: {name: fads}
"""


def test_the_stream_benchmark_measures_the_policy_it_is_given(tmp_path: Path) -> None:
    """Not another one: its models, bound and algorithm; options replace what they name."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    chance = Random(1)
    rows = [f"{chance.randrange(100)},{chance.choice('aabcdefg')}" for _ in range(900)]
    (tmp_path / "rows.csv").write_text("\n".join(["age,ill", *rows]) + "\n")
    given = ["--json", "--seconds", "0", "--policy", str(tmp_path / "policy.yaml"), str(tmp_path / "rows.csv")]
    cases = []
    for more in ([], ["--l", "1"], ["--k", "3", "--delay", "60", "--algorithm", "cail"]):
        command = [sys.executable, str(FOLDER / "stream.py"), *given, *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
        cases.append(json.loads(done.stdout.splitlines()[-1]))
    own, plain, other = cases
    assert (own["algorithm"], own["k"], own["delay"]) == ("fads", 7, 120)
    assert [model["model"] for model in own["privacy"]] == ["k_anonymity", "lc_anonymity"]
    assert own["delay_max"] <= 120
    assert (other["algorithm"], other["k"], other["delay"]) == ("cail", 3, 60)
    assert [model["model"] for model in plain["privacy"]] == ["k_anonymity"]
    assert plain["ncp"] < own["ncp"]  # a policy that asks for less loses less


@pytest.mark.parametrize(("name", "options", "told"), SHORT, ids=[name for name, *_ in SHORT])
def test_it_runs_and_tells(name: str, options: list[str], told: str) -> None:
    command = [sys.executable, str(FOLDER / name), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    line = json.loads(done.stdout.splitlines()[-1])
    assert told in str(line), line


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.py") if "argparse" in path.read_text()))
def test_it_can_be_started(name: str) -> None:
    """Those that need a broker, too: a file beside them may hide the package of a client."""
    done = subprocess.run([sys.executable, str(FOLDER / name), "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert done.stdout.startswith("usage:")
