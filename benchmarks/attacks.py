"""Attacks that k-anonymity does not answer, on what the stream publishes: the figures of docs/promise.md.

A made-up hospital whose people come back, and Adult where its folder is given. Each table is published twice, under its
policy and with another bound, as two readers of one topic would; `stream-anon attack` does the rest.

    python benchmarks/attacks.py --data DIR --json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

from adult import QUASI, SENSITIVE

from stream_anon.demo import admissions, policy_text

SECRET = "secret: one for this benchmark, long enough to be taken"
STREAM = [sys.executable, "-m", "stream_anon"]


def hospital(folder: Path, k: int, rows: int) -> Path:
    """Write the demo's records and its policy, with a twentieth as many people as records."""
    with (folder / "raw.jsonl").open("wb") as file:
        file.writelines(record + b"\n" for record in islice(admissions(5, people=max(rows // 20, 1)), rows))
    text = policy_text().replace("version: 1", f"version: 1\n{SECRET}", 1).replace("k: 5", f"k: {k}")
    (folder / "policy.yaml").write_text(text.replace("time: 3s", "records: 3000"), encoding="utf-8")
    return folder / "raw.jsonl"


def adult(folder: Path, data: Path, k: int, rows: int) -> Path:
    """Seven quasi-identifiers, occupation sensitive, three of its values in every group; a number for each person."""
    for name in (*QUASI[1:], SENSITIVE):
        copyfile(data / "hierarchies" / f"{name}.csv", folder / f"{name}.csv")
    head, *lines = (data / "adult.csv").read_text(encoding="utf-8").splitlines()[: rows + 1]
    numbered = [f"{number},{line}" for number, line in enumerate(lines)]
    (folder / "raw.csv").write_text("\n".join([f"who,{head}", *numbered]) + "\n", encoding="utf-8")
    age = "{role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [17, 90], snap: [5, 10]}}"
    tree = "{{role: quasi_identifier, type: category, hierarchy: {{kind: csv, path: {0}.csv}}}}"
    text = ["version: 1", "name: adult", SECRET, "subject: who", "attributes:", "  who: {role: identifier}"]
    text += [f"  age: {age}", *(f"  {name}: {tree.format(name)}" for name in QUASI[1:])]
    text += [f"  {SENSITIVE}: {{role: sensitive, hierarchy: {{kind: csv, path: {SENSITIVE}.csv}}}}"]
    text += [
        "privacy:",
        f"  - {{model: k_anonymity, k: {k}}}",
        f"  - {{model: l_diversity, attribute: {SENSITIVE}, l: 3}}",
    ]
    text += ["stream: {max_delay: {records: 3000}}", ""]
    (folder / "policy.yaml").write_text("\n".join(text), encoding="utf-8")
    return folder / "raw.csv"


def main() -> None:
    """Publish, attack, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and hierarchies/")
    parser.add_argument("--k", nargs="+", type=int, default=[5, 10])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--tries", type=int, default=400, help="victims of the isolation attack")
    parser.add_argument("--json", action="store_true", help="one line of JSON per attack")
    arguments = parser.parse_args()
    for name in ("hospital", "adult") if arguments.data else ("hospital",):
        for k in arguments.k:
            with TemporaryDirectory() as made:
                folder = Path(made)
                raw = (
                    hospital(folder, k, arguments.rows)
                    if name == "hospital"
                    else adult(folder, arguments.data, k, arguments.rows)
                )
                for case in attacked(folder, raw, arguments.tries):
                    case = {"table": name, "k": k} | case
                    figures = f"{case['tried']:>8,}{case['share']:8.1%}  {case['baseline'] or ''}"
                    told = f"{name:10}{k:4}  {case['attack']:28}{figures}"
                    print(json.dumps(case) if arguments.json else told, flush=True)


def attacked(folder: Path, raw: Path, tries: int) -> list[dict[str, object]]:
    """Return what `attack` measures on two outputs of one table."""
    policy, other = folder / "policy.yaml", folder / "second.yaml"
    other.write_text(policy.read_text(encoding="utf-8").replace("records: 3000", "records: 1000"), encoding="utf-8")
    outs = [folder / "one.jsonl", folder / "two.jsonl"]
    for under, out in zip((policy, other), outs, strict=True):
        subprocess.run(
            [*STREAM, "replay", str(raw), "-p", str(under), "-o", str(out), "--rate", "1000"],
            check=True,
            capture_output=True,
        )
    command = [*STREAM, "attack", str(outs[0]), "--raw", str(raw), "-p", str(policy), "--json"]
    command += ["--second", str(outs[1]), "--second-policy", str(other), "--isolation", str(tries)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["measured"]
    return [
        {
            "attack": f"{each['name']} {each['attribute']}".strip(),
            "tried": each["tried"],
            "share": round(each["share"], 4),
            "baseline": each["baseline"] and round(each["baseline"], 4),
        }
        for each in found
    ]


if __name__ == "__main__":
    main()
