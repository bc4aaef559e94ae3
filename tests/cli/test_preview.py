"""`preview`, as a user calls it."""

from __future__ import annotations

import csv
import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from stream_anon.cli import run_command as run
from stream_anon.core.schema import Schema
from stream_anon.demo import admissions, policy_text
from stream_anon.formats.tables import read_parts
from stream_anon.insight import advice
from stream_anon.insight.distributions import distributions
from stream_anon.insight.sample import read_sample
from stream_anon.local.trial import encode_all, try_stream
from stream_anon.observe.tally import Tally
from stream_anon.policy import load

COUNT = 400


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(policy_text(), encoding="utf-8")
    records = [json.loads(record) | {"phone": "555-0101"} for record in islice(admissions(3), COUNT)]
    Path("data.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    with Path("data.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    return tmp_path


def previewed(capsys: pytest.CaptureFixture[str], data: str, *more: str) -> dict[str, Any]:
    assert run(["preview", data, "-p", "policy.yaml", "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("data", ["data.jsonl", "data.csv"])
def test_rows_are_shown_before_and_after(place: Path, capsys: pytest.CaptureFixture[str], data: str) -> None:
    found = previewed(capsys, data, "--rows", "4")
    table = [json.loads(line) for line in Path("data.jsonl").read_text().splitlines()]
    assert len(found["rows"]) == 4
    boxes = set()
    for pair in found["rows"]:
        before, after = pair["before"], pair["after"]
        assert {k: str(v) for k, v in before.items()} in [{k: str(v) for k, v in row.items()} for row in table]
        low, high = after["birth_year"]
        assert low <= int(before["birth_year"]) <= high
        assert before["diagnosis"] == after["diagnosis"]
        assert not {"patient_id", "name", "phone"} & after.keys()
        boxes.add(json.dumps([after[name] for name in ("birth_year", "zip", "gender", "country")]))
    assert len(boxes) == 1


NEXT = [
    # remark, name, the command that is suggested
    ("tabs", "t.tsv", "stream-anon pipe -p policy.yaml --csv < t.tsv > anonymous.jsonl"),
    ("an array, which no pipe reads", "t.json", "stream-anon anonymize t.json -p policy.yaml -o anonymous.jsonl"),
]


@pytest.mark.parametrize(("name", "command"), [c[1:] for c in NEXT], ids=[c[0] for c in NEXT])
def test_the_command_that_is_suggested_reads_the_table(
    place: Path, capsys: pytest.CaptureFixture[str], name: str, command: str
) -> None:
    records = [json.loads(line) for line in Path("data.jsonl").read_text().splitlines()]
    text = Path("data.csv").read_text().replace(",", "\t") if name == "t.tsv" else json.dumps(records)
    Path(name).write_text(text)
    assert previewed(capsys, name, "--rate", "50")["next"] == command


def test_no_delay_seems_to_break_a_bound_by_records(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = Path("policy.yaml").read_text()
    assert "{time: 3s}" in text
    text = text.replace("{time: 3s}", "{time: 3s, records: 100}") + "algorithm: {name: fads}\n"  # leaves when due
    Path("policy.yaml").write_text(text)
    found = previewed(capsys, "data.jsonl", "--rate", "1000")
    assert 0.09 < found["delay"]["longest"] <= found["delay"]["bound"] == 0.1


def test_figures_agree_with_one_another(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = previewed(capsys, "data.jsonl", "--rate", "50")
    assert found["published"] + found["suppressed"] == found["records"] == COUNT
    assert sum(found["group_sizes"].values()) * found["required_people"] <= COUNT
    assert min(map(int, found["group_sizes"])) == found["smallest_group_people"] >= found["required_people"] == 5
    assert found["risk"]["after"]["highest"] <= 1 / 5 < found["risk"]["before"]["highest"] == 1.0
    assert found["risk"]["after"]["above_1_over_k"] == 0
    assert 0 < found["delay"]["mean"] <= found["delay"]["longest"] <= found["delay"]["bound"] == 3.0


def test_more_records_within_the_bound_lose_less(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow, fast = (previewed(capsys, "data.jsonl", "--rate", rate) for rate in ("10", "1000"))
    assert fast["loss"] < slow["loss"]


def test_terminal(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["preview", "data.csv", "-p", "policy.yaml"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    for word in (
        "shown here only",
        "(not published)",
        "(dropped)",
        "unchanged",
        "█",
        "re-identification risk",
        "delay:",
    ):
        assert word in captured.err
    assert captured.err.splitlines()[-1] == "next: stream-anon pipe -p policy.yaml --csv < data.csv > anonymous.jsonl"


def test_the_page_has_no_value_of_a_record(place: Path) -> None:
    assert run(["preview", "data.jsonl", "-p", "policy.yaml", "--html", "page.html"]) == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "birth_year" in page
    for record in islice(admissions(3), COUNT):
        assert json.loads(record)["patient_id"] not in page
    assert run(["preview", "data.jsonl", "-p", "policy.yaml", "--html", "page.html"]) == 1
    assert run(["preview", "data.jsonl", "-p", "policy.yaml", "--html", "page.html", "--force"]) == 0


STEPS = [
    # remark, a change of the policy, more arguments, the word of the next step
    ("rows were rejected", ("type: integer", "type: integer, missing: reject"), "stream-anon check policy.yaml --data"),
    ("too few meet", ("k: 5", "k: 60"), "a bound of 12 s would lose"),
    ("too many are asked for", ("time: 3s", "time: 30ms"), "too much is suppressed: "),
]


@pytest.mark.parametrize(("change", "word"), [c[1:] for c in STEPS], ids=[c[0] for c in STEPS])
def test_next_step(place: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], word: str) -> None:
    Path("policy.yaml").write_text(policy_text().replace(*change), encoding="utf-8")
    if "reject" in change[1]:
        with Path("data.jsonl").open("a") as file:
            file.write('{"patient_id": "P1"}\n')
    assert word in previewed(capsys, "data.jsonl", "--rate", "100")["next"]


def test_half_of_k_is_the_last_advice(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advice, "_changes", lambda *given: ())
    Path("policy.yaml").write_text(policy_text().replace("k: 5", "k: 100"), encoding="utf-8")
    assert "k = 50, which protects less, would lose" in previewed(capsys, "data.jsonl", "--rate", "1000")["next"]


def test_where_nothing_helps_the_facts_are_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was tried and what it would lose, and how many groups the records can make at all."""
    Path("policy.yaml").write_text(policy_text().replace("k: 5", f"k: {4 * COUNT}"), encoding="utf-8")
    step = previewed(capsys, "data.jsonl", "--rate", "1000000")["next"]
    assert "nothing that was tried helps" in step
    assert "the others without" in step
    assert f"k = {2 * COUNT}, which protects less, would lose 100% in place of 100%" in step
    assert f"{COUNT:,} records make at most 0 groups of {4 * COUNT:,}: it takes more records" in step


def test_distributions_before_and_after(place: Path) -> None:
    """Every row is somewhere on the scale, before and after; where nothing is generalized, both are the same."""
    assert run(["preview", "data.jsonl", "-p", "policy.yaml", "--html", "page.html"]) == 0
    page = Path("page.html").read_text(encoding="utf-8")
    for name in ("birth_year", "zip", "gender", "country"):
        assert f"Distribution of {name}" in page
    sample = read_sample(Path("data.jsonl"))
    loaded = load(Path("policy.yaml"))
    schema = Schema.compile(loaded)
    rows = encode_all(read_parts(sample.file), schema, Tally([], 5, "people"), lambda found: None, lambda share: None)
    found = distributions(try_stream(schema, rows, 100.0, lambda share: None).groups)
    for each in found:
        assert sum(each.before) == pytest.approx(1) == sum(each.after)
        assert 0 <= each.moved < 0.7
    assert {each.name: each.moved for each in found}["birth_year"] > 0


def test_an_empty_table(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("data.jsonl").write_text("")
    assert previewed(capsys, "data.jsonl")["published"] == 0
