"""`stream-anon compare`: what each algorithm, k and bound would cost on a table, side by side; publishes nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from stream_anon.batch import ALGORITHMS
from stream_anon.cli import output
from stream_anon.cli.anonymize import bars
from stream_anon.cli.comparison_page import page, panels
from stream_anon.cli.options import Encoding
from stream_anon.cli.prepare import prepare
from stream_anon.cli.preview import unheard, up_to
from stream_anon.cli.provenance import provenance
from stream_anon.cli.ready import make_ready
from stream_anon.cli.results import result_of
from stream_anon.formats.tables import format_of, read_parts
from stream_anon.formats.writers import keep_apart, new_file, refuse_to_overwrite
from stream_anon.grammar.fields import seconds
from stream_anon.insight.compare import STREAM, Comparison, Setting, bound_in_words, settings_of
from stream_anon.local.trial import encode_all
from stream_anon.observe.tally import Tally, smallest_group
from stream_anon.policy.settings import MaxDelay
from stream_anon.report import Result, render
from stream_anon.report.result import NO_SUBJECT


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a comparison: its setting, its result, and the time it took."""

    setting: Setting
    result: Result
    cpu_seconds: float

    def as_data(self) -> dict[str, Any]:
        """Return the run as plain data."""
        setting, result, bound = self.setting, self.result, self.setting.bound
        return {
            "algorithm": setting.algorithm,
            "k": setting.k,
            "max_delay": None if bound is None else bound.model_dump(exclude_none=True),
            "loss": round(result.loss, 5),
            "published": result.published,
            "suppressed": result.suppressed,
            "delay_mean": None if result.delay is None else round(result.delay.mean, 4),
            "delay_longest": None if result.delay is None else round(result.delay.longest, 4),
            "risk_mean": round(result.after.mean, 5),
            **smallest_group(min(result.sizes, default=0), result.k, result.counts),
            "cpu_seconds": round(self.cpu_seconds, 3),
        }


def compare(
    data: Annotated[Path, typer.Argument(help="The table: .csv, .tsv, .jsonl, .json or .parquet.", show_default=False)],
    policy: Annotated[Path, typer.Option("--policy", "-p", help="The policy file (YAML).", show_default=False)],
    k: Annotated[
        str, typer.Option("--k", help="People per group (records, without a subject), several with commas.")
    ] = "5,10,50",
    max_delay: Annotated[
        str, typer.Option("--max-delay", help="Bounds: 500 is records, 5s is time; several with commas.")
    ] = "500,1000,2000",
    algorithm: Annotated[
        str,
        typer.Option("--algorithm", "-a", help=f"Of the stream: {', '.join(STREAM)}; batch: {', '.join(ALGORITHMS)}."),
    ] = ",".join(STREAM),
    rate: Annotated[float, typer.Option("--rate", min=1e-6, help="Records a second, on a simulated clock.")] = 1000,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Read at most about this many rows.")] = 20_000,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page with charts.")] = None,
    png: Annotated[Path | None, typer.Option("--png", help="Write the charts as a picture (extra: plot).")] = None,
    encoding: Encoding = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")] = False,
) -> None:
    """Compare algorithms, k and delay bounds on your own data, each pair once, on a simulated clock.

    Everything else is as the policy says. The stated k takes the place of every k in it. A batch algorithm sees the
    whole table at once and knows no delay: it shows what could be had without one.

    [bold]Examples[/bold]

        stream-anon compare patients.csv -p policy.yaml --k 5,10 --max-delay 500,1000,5s

        stream-anon compare patients.csv -p policy.yaml --algorithm cail,castle,sweep --html compare.html
    """
    bounds = [_bound(word) for word in _words(max_delay, "--max-delay")]
    settings = settings_of(_words(algorithm, "--algorithm"), [_people(word) for word in _words(k, "--k")], bounds)
    loaded, _ = prepare(policy)
    format_of(data)
    keep_apart([data, policy], [html, png])
    for path in filter(None, (html, png)):
        refuse_to_overwrite(path, force)
    comparison = Comparison(loaded, rate)
    comparison.refuse_early(settings)
    for each in {setting.algorithm: comparison.schema(setting) for setting in settings}.values():
        make_ready(each, quiet=as_json)
    with bars(quiet=as_json) as bar:
        tally = Tally([], 1, comparison.schema().counts)
        parts = up_to(limit, read_parts(data, at_once=min(limit, 10_000), encoding=encoding))
        comparison.rows = encode_all(parts, comparison.schema(), tally, unheard, bar("reading"))
        runs = _runs(comparison, settings, bar(f"comparing {len(settings)} settings"))
    lead = f"{data.name}, {tally.consumed - tally.rejected.total():,} records, policy {loaded.policy.name}"
    lead += f"; {NO_SUBJECT}" if tally.counts == "records" else ""
    if html is not None:
        with new_file(html, force) as raw:
            about = provenance(comparison.schema(), [("input", data), ("policy file", policy)])
            raw.write(render(page(runs, lead, about)).encode())
    if png is not None:
        from stream_anon.report.png import draw

        with new_file(png, force) as raw:
            draw(panels(runs), raw)
    step = _next_step(runs, policy)
    if as_json:
        output.print_json({"rows": tally.consumed, "rate": rate, "runs": [run.as_data() for run in runs], "next": step})
        return
    console = output.talk()
    console.print(_table(runs))
    if tally.rejected.total():
        console.print(f"{tally.rejected.total():,} rows were rejected: {output.check_of(policy, data, encoding)}")
    if tally.counts == "records":
        console.print(Text(NO_SUBJECT, style="yellow"))
    for path in filter(None, (html, png)):
        console.print(f"wrote {path}")
    console.print(Text(f"next: {step}", style="bold green"))


def _runs(comparison: Comparison, settings: list[Setting], progress: Any) -> list[Run]:
    runs: list[Run] = []
    for setting in settings:
        begin = time.process_time()
        trial = comparison.run(setting, lambda share: progress((len(runs) + share) / len(settings)))
        spent = time.process_time() - begin
        trial.tally.consumed = trial.tally.published + trial.tally.suppressed
        runs.append(Run(setting, result_of(trial.tally, trial.groups, trial.bound), spent))
        progress(len(runs) / len(settings))
    return runs


def _words(text: str, option: str) -> list[str]:
    words = list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not words:
        raise typer.BadParameter("nothing to compare", param_hint=option)
    return words


def _people(word: str) -> int:
    if not word.isdigit() or int(word) < 2:
        raise typer.BadParameter(f'"{word}": k is a whole number from 2 on', param_hint="--k")
    return int(word)


def _bound(word: str) -> MaxDelay:
    try:
        return MaxDelay(records=int(word)) if word.isdigit() else MaxDelay(time=seconds(word))
    except ValueError:
        raise typer.BadParameter(f'"{word}": 500 is records, 5s is time', param_hint="--max-delay") from None


def _table(runs: list[Run]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for heading in ("k", "algorithm", "bound", "lost", "dropped", "delay", "risk", "rows/CPU s"):
        left = heading in ("algorithm", "bound")
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    least = {run.setting.k: min(r.result.loss for r in runs if r.setting.k == run.setting.k) for run in runs}
    for before, run in zip([None, *runs], runs, strict=False):
        if before is not None and before.setting.k != run.setting.k:
            table.add_section()
        result, setting = run.result, run.setting
        best = result.loss == least[setting.k]
        table.add_row(
            f"{setting.k}",
            setting.algorithm,
            bound_in_words(setting.bound),
            Text(f"{result.loss:.1%}", style="bold green" if best else ""),
            f"{result.suppressed:,}",
            "-" if result.delay is None else f"{result.delay.mean:.3g} s",
            f"{result.after.mean:.1%}",
            f"{result.records / max(run.cpu_seconds, 1e-6):,.0f}",
        )
    return table


def _next_step(runs: list[Run], policy: Path) -> str:
    within = [run for run in runs if run.setting.bound is not None]
    best = min(within or runs, key=lambda run: run.result.loss).setting
    if best.bound is None:
        return f"stream-anon anonymize DATA -p {output.quoted(policy)} -o OUT --algorithm {best.algorithm}"
    wanted = ", ".join(f"{key}: {value:g}" for key, value in best.bound.model_dump(exclude_none=True).items())
    return f"write what you choose into {policy}; {best.algorithm} loses least with stream: {{max_delay: {{{wanted}}}}}"
