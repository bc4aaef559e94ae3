"""The delay/loss chart of a run of `benchmarks/stream.py --json`: one panel per k, one line per algorithm.

python benchmarks/stream.py --data DIR --json > stream.jsonl
python benchmarks/plot.py stream.jsonl -o stream.svg
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

MARKS = {"cail": "o", "castle": "s", "fads": "^", "standing": "d"}


def main() -> None:
    """Read the cases, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path, help="JSON lines of benchmarks/stream.py")
    parser.add_argument("-o", "--output", type=Path, default=Path("stream.svg"), help="a .png or .svg file")
    parser.add_argument("--l", type=int, default=1, help="the cases with this l")
    arguments = parser.parse_args()
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        parser.error("matplotlib is missing: pip install 'stream-anon[plot]'")
    cases = [json.loads(line) for line in arguments.cases.read_text(encoding="utf-8").splitlines() if line]
    cases = [case for case in cases if case["l"] == arguments.l]
    if not cases:
        parser.error(f"{arguments.cases} holds no case with l = {arguments.l}")
    sizes = sorted({case["k"] for case in cases})
    figure, panels = plt.subplots(1, len(sizes), figsize=(4.2 * len(sizes), 3.6), sharey=True, squeeze=False)
    for panel, k in zip(panels[0], sizes, strict=True):
        for algorithm in dict.fromkeys(case["algorithm"] for case in cases):
            line = sorted(
                (case["delay_mean"], case["ncp"]) for case in cases if (case["algorithm"], case["k"]) == (algorithm, k)
            )
            panel.plot(*zip(*line, strict=True), marker=MARKS.get(algorithm, "x"), label=algorithm)
        panel.set_title(f"k = {k}")
        panel.set_xlabel("mean delay (arrivals)")
        panel.set_xscale("log")
        panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("information lost (NCP per cell)")
    panels[0][0].set_ylim(bottom=0)
    panels[0][-1].legend()
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=150)
    print(arguments.output)


if __name__ == "__main__":
    main()
