from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_anon.cli import run_command as run
from stream_anon.core.decode import Rejection
from stream_anon.insight import sample

EXAMPLE = Path(__file__).parents[1] / "data" / "admissions"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_the_example_passes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "policy.yaml"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "policy admissions: ok — next: stream-anon check policy.yaml --data SAMPLE\n"


def test_a_finding_is_shown_with_line_caret_and_hint(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(folder / "policy.yaml", "l_diversity", "l_diversty")
    assert run(["check", "policy.yaml"]) == 3
    assert capsys.readouterr().err.splitlines() == [
        'policy.yaml:16:13: error unknown-kind: "l_diversty" is not a model',
        "    - {model: l_diversty, attribute: diagnosis, l: 3, variant: entropy}",
        "              ^^^^^^^^^^",
        '  hint: did you mean "l_diversity"?',
        "policy.yaml: 1 error — next: correct it and check again",
    ]


BROKEN_FILES = [
    # remark, file, content, expected beginning of the finding
    ("a leaf twice", "country.csv", "A;x;*\nB;x;*\nA;x;*\n", "country.csv:3:1: error duplicate-leaf"),
    ("two parents", "country.csv", "A;x;p;*\nB;x;q;*\n", "country.csv:2:5: error two-parents"),
    ("uneven lines", "country.csv", "A;x;*\nB;*\n", "country.csv:2:3: error uneven-lines"),
    ("no tree", "country.csv", "A\nB\n", "country.csv:1:1: error one-column"),
    ("an empty label", "country.csv", "A;x;*\n;x;*\n", "country.csv:2:1: error empty-cell"),
    ("two roots", "country.csv", "A;x;*\nB;x;all\n", "country.csv:2:5: error two"),
    ("empty", "country.csv", "", "country.csv: error empty-file"),
    ("a quote left open", "country.csv", 'A;x;*\n"B;x;*\n', "country.csv:2:1: error bad-quote"),
]


@pytest.mark.parametrize(
    ("file", "content", "expected"), [c[1:] for c in BROKEN_FILES], ids=[c[0] for c in BROKEN_FILES]
)
def test_broken_file(folder: Path, file: str, content: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / file).write_text(content)
    assert run(["check", "policy.yaml"]) == 3
    talk = capsys.readouterr().err
    assert talk.startswith(expected)
    assert "Traceback" not in talk


PROTECTION = "{model: lc_anonymity, c: 0.5, values: t.csv"
ALPHA = "{model: alpha_k, k: 5, alpha: t.csv"
REFERENCE = "{model: t_closeness, t: 0.5, reference: t.csv"

TABLES = [
    # remark, model, content, code, line, column
    ("no header", PROTECTION, "Flu;2;0\n", "wrong-header", 1, 1),
    ("not a number", ALPHA, "value;alpha\nFlu;much\n", "not-a-number", 2, 5),
    ("out of range", ALPHA, "value;alpha\nFlu;3\n", "out-of-range", 2, 5),
    ("a value twice", REFERENCE, "value;weight\nFlu;1\nFlu;1\n", "duplicate-value", 3, 1),
    ("a cell too many", REFERENCE, "value;weight\nFlu;1;2\n", "wrong-cell-count", 2, 7),
    ("only a header", PROTECTION, "value;l;sensitivity\n", "empty-file", 1, 1),
]


@pytest.mark.parametrize(
    ("model", "content", "code", "line", "column"), [c[1:] for c in TABLES], ids=[c[0] for c in TABLES]
)
def test_broken_table(
    folder: Path, model: str, content: str, code: str, line: int, column: int, capsys: pytest.CaptureFixture[str]
) -> None:
    change(folder / "policy.yaml", "stream: ", f"  - {model}, attribute: diagnosis}}\nstream: ")
    (folder / "t.csv").write_text(content)
    assert run(["check", "policy.yaml", "--json"]) == 3
    [finding] = json.loads(capsys.readouterr().out)["diagnostics"]
    assert (finding["file"], finding["code"], finding["line"], finding["column"]) == ("t.csv", code, line, column)


def test_a_missing_file_is_shown_where_it_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "icd.csv").unlink()
    assert run(["check", "policy.yaml"]) == 3
    assert capsys.readouterr().err.startswith("policy.yaml:12:78: error missing-file: icd.csv: there is no such file\n")


def test_files_are_named_from_where_the_reader_stands(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "country.csv").write_text("A\n")
    monkeypatch.chdir(folder.parent)
    assert run(["check", f"{folder.name}/policy.yaml"]) == 3
    assert capsys.readouterr().err.startswith(f"{folder.name}/country.csv:1:1: error one-column")


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(folder / "policy.yaml", "k: 5", "k: 1")
    assert run(["check", "policy.yaml", "--json"]) == 3
    captured = capsys.readouterr()
    assert captured.err == ""
    assert json.loads(captured.out) == {
        "policy": "policy.yaml",
        "ok": False,
        "diagnostics": [
            {
                "severity": "error",
                "code": "out-of-range",
                "message": '"k" must be at least 2',
                "file": "policy.yaml",
                "line": 15,
                "column": 29,
                "width": 1,
                "hint": "",
            }
        ],
    }


GUARD = "{model: guarding_node, attribute: diagnosis, p: 0.4}"
LOW_C = "{model: lc_anonymity, attribute: diagnosis, c: 0.2, l: 3}"
PASSWORD = "{options: {sasl.password: hunter2}, bootstrap:"

WARNINGS = [
    # remark, words replaced, by, code, line, column
    ("nobody is told apart", "subject: patient_id", "# no subject", "k-counts-records", 15, 29),
    (
        "a secret in the file",
        "version: 1",
        "version: 1\nsecret: hunter2 and more that nobody guesses",
        "secret-in-file",
        2,
        9,
    ),
    ("a password in the file", "{bootstrap:", PASSWORD, "secret-in-file", 20, 38),
    (
        "a default is in the file too",
        "version: 1",
        "version: 1\nsecret: ${NOT_SET:-hunter2 and more that nobody guesses}",
        "secret-in-file",
        2,
        9,
    ),
    ("too diverse", "l: 3", "l: 9", "l-above-values", 16, 51),
    ("an only child", "[female, male, other]}}", "[female]}}", "single-child", 9, 56),
    ("c below 1/l", GUARD, LOW_C, "c-below-1-over-l", 17, 52),
]


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "column"), [c[1:] for c in WARNINGS], ids=[c[0] for c in WARNINGS]
)
def test_warning(
    folder: Path, old: str, new: str, code: str, line: int, column: int, capsys: pytest.CaptureFixture[str]
) -> None:
    change(folder / "policy.yaml", old, new)
    assert run(["check", "policy.yaml"]) == 0
    talk = capsys.readouterr().err
    assert f"policy.yaml:{line}:{column}: warning {code}: " in talk
    assert "policy admissions: ok, 1 warning — next: " in talk
    assert "hunter2" not in talk
    assert run(["check", "policy.yaml", "--strict"]) == 3


def test_many_quasi_identifiers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = "".join(
        f"  z{i}: {{role: quasi_identifier, type: category, hierarchy: {{kind: prefix, length: 2}}}}\n"
        for i in range(4)
    )
    change(folder / "policy.yaml", "attributes:\n", f"attributes:\n{more}")
    assert run(["check", "policy.yaml"]) == 0
    assert "policy.yaml:4:1: warning many-quasi-identifiers: 9 quasi-identifiers" in capsys.readouterr().err


def test_a_secret_from_the_environment_is_fine(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANON_SECRET", "hunter2 and more that nobody guesses")
    change(folder / "policy.yaml", "version: 1", "version: 1\nsecret: ${ANON_SECRET}")
    assert run(["check", "policy.yaml", "--strict"]) == 0
    assert "warning" not in capsys.readouterr().err


def rows(count: int) -> list[dict[str, object]]:
    return [
        {
            "patient_id": i,
            "birth_year": 1950 + i,
            "zip": "02139",
            "gender": "male",
            "country": "Peru",
            "admitted": "2024-05-01T10:00:00Z",
            "diagnosis": ["Flu", "Asthma", "HIV", "Measles"][i % 4],
            "ward": "B",
        }
        for i in range(count)
    ]


SAMPLES = [
    # remark, field, its value in row i, code, count told
    ("a value without a leaf", "gender", lambda i: "hidden7" if i < 3 else "male", "value-without-leaf", "3 of 40"),
    ("a number outside the range", "birth_year", lambda i: 1801 if i < 2 else 1980, "value-without-leaf", "2 of 40"),
    ("no value", "country", lambda i: None if i < 5 else "Peru", "value-missing", "5 of 40"),
    ("a value of another type", "birth_year", lambda i: "hidden7" if i < 4 else 1980, "value-of-wrong-type", "4 of 40"),
    ("nearly unique", "ward", lambda i: f"hidden{i}", "nearly-unique", "100%"),
]


@pytest.mark.parametrize(("field", "value", "code", "told"), [c[1:] for c in SAMPLES], ids=[c[0] for c in SAMPLES])
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_sample(
    folder: Path, field: str, value: object, code: str, told: str, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(value)
    sample = [{**row, field: value(i)} for i, row in enumerate(rows(40))]
    if suffix == "jsonl":
        text = "".join(json.dumps(row) + "\n" for row in sample)
    else:
        lines = [list(sample[0]), *(["" if cell is None else cell for cell in row.values()] for row in sample)]
        text = "".join(",".join(map(str, line)) + "\n" for line in lines)
    (folder / f"sample.{suffix}").write_text(text)
    assert run(["check", "policy.yaml", "--data", f"sample.{suffix}", "--json"]) == 0
    [finding] = json.loads(capsys.readouterr().out)["diagnostics"]
    assert finding["code"] == code
    assert told in finding["message"]
    assert "hidden" not in str(finding)


def test_a_misspelt_field(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where absent values are allowed, nothing is rejected, and nothing but this tells that a name is wrong."""
    sample = [{("Countries" if name == "country" else name): cell for name, cell in row.items()} for row in rows(30)]
    (folder / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sample))
    change(folder / "policy.yaml", "weight: 0.5", "weight: 0.5, missing: leaf")
    assert run(["check", "policy.yaml", "--data", "s.jsonl", "--json"]) == 0
    [finding] = json.loads(capsys.readouterr().out)["diagnostics"]
    assert (finding["code"], finding["hint"]) == ("value-missing", 'did you mean "Countries"?')


def test_a_good_sample(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(30)))
    assert run(["check", "policy.yaml", "--data", "s.jsonl"]) == 0
    assert capsys.readouterr().err == "policy admissions: ok — next: stream-anon preview s.jsonl --policy policy.yaml\n"


def test_words_that_become_unknown_are_no_wrong_type(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A number's hierarchy may keep a place for what is none: then a word now and then is as it should be."""
    text = (folder / "policy.yaml").read_text()
    head, tail = text.split("attributes:\n", 1)
    hierarchy = "{kind: interval, range: [0, 99], snap: [5]}"
    line = f"  years: {{role: quasi_identifier, type: integer, hierarchy: {hierarchy}, %s: leaf}}\n"
    for words, kept, told in ((1, "unknown", False), (1, "missing", True), (20, "unknown", True)):
        (folder / "policy.yaml").write_text(f"{head}attributes:\n{line % kept}{tail}")
        records = [row | {"years": "no" if i < words else i} for i, row in enumerate(rows(30))]
        (folder / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records))
        run(["check", "policy.yaml", "--data", "s.jsonl"])
        assert ("value-of-wrong-type" in capsys.readouterr().err) is told, (words, kept)


BAD_SAMPLES = [
    # remark, name, content, expected
    ("not JSON", "s.jsonl", b'{"ward": "B"}\n{"hidden7"\n', "s.jsonl:2: warning not_json: this record is not JSON;"),
    ("not an object", "s.jsonl", b'["hidden7"]\n', "s.jsonl:1: warning not_object: this record is not a JSON object;"),
    ("not UTF-8", "s.csv", b"ward\nhidden7\xff\n", "s.csv:2: warning not_utf8: this record is not UTF-8;"),
    (
        "a cell too many",
        "s.csv",
        b"ward,a\nhidden7,1,2\n",
        "s.csv:2: warning cell_count: this record has more or fewer",
    ),
]


@pytest.mark.parametrize(("name", "content", "expected"), [c[1:] for c in BAD_SAMPLES], ids=[c[0] for c in BAD_SAMPLES])
def test_a_bad_sample(
    folder: Path, name: str, content: bytes, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / name).write_bytes(content)
    assert run(["check", "policy.yaml", "--data", name, "--strict"]) == 3
    told = capsys.readouterr().err.replace("error", "warning")
    assert expected in " ".join(told.split())
    assert ("--encoding windows-1252" in told) is ("not_utf8" in told)
    assert ("name it .json" in told) is ("not_object" in told)
    assert "hidden7" not in told


def test_what_a_batch_algorithm_gives_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\nname: t\nattributes:\n"
        "  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 99], snap: [5]}}\n"
        "  ill: {role: sensitive}\n"
        "privacy: [{model: k_anonymity, k: 3}, {model: l_diversity, attribute: ill, l: 3}]\n"
    )
    for algorithm, code, words in (
        ("sweep", 0, ""),
        ("l-clustering", 0, "by-value"),
        ("lc-clustering", 3, "cannot honour"),
        ("nothing", 2, "sweep"),
    ):
        assert run(["check", str(policy), "--algorithm", algorithm]) == code, algorithm
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(("word", "told"), [("-1", True), ("999", True), ("Unbekannt", True), ("asthma", False)])
def test_a_word_that_stands_for_nothing(
    folder: Path, word: str, told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [row | {"diagnosis": word if i == 3 else row["diagnosis"]} for i, row in enumerate(rows(30))]
    (folder / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records))
    run(["check", "policy.yaml", "--data", "s.jsonl"])
    assert ("list such words under missing_values" in capsys.readouterr().err) is told


def test_every_kind_of_bad_line_has_a_remedy() -> None:
    for code in sample._MEANINGS:
        assert "docs/tables.md" not in sample.remedy_of([Rejection(1, code)])
