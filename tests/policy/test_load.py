from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_anon.cli import run_command as run
from stream_anon.errors import PolicyError
from stream_anon.policy import LoadedPolicy, load

EXAMPLE = Path(__file__).parents[1] / "data" / "admissions" / "policy.yaml"

BROKEN = [
    # remark, words replaced, by, code, line, column, width, hint
    ("a misspelt section", "attributes:", "atributes:", "unknown-key", 4, 1, 9, 'did you mean "attributes"?'),
    ("a misspelt key", "weight: 0.5", "wieght: 0.5", "unknown-key", 10, 56, 6, 'did you mean "weight"?'),
    ("a key of another kind", "length: 5", "values: [a]", "unknown-key", 8, 82, 6, "one of: kind, length, alphabet"),
    ("a misspelt role", "role: insensitive", "role: insensitiv", "unknown-kind", 13, 22, 10, 'mean "insensitive"?'),
    ("a misspelt model", "l_diversity", "l_diversty", "unknown-kind", 16, 13, 10, 'did you mean "l_diversity"?'),
    ("a misspelt kind", "kind: calendar", "kind: calender", "unknown-kind", 11, 75, 8, 'did you mean "calendar"?'),
    ("a misspelt algorithm", "name: cail", "name: cial", "unknown-kind", 19, 19, 4, 'did you mean "cail"?'),
    ("a misspelt type", "type: timestamp", "type: timestmp", "bad-value", 11, 46, 8, 'did you mean "timestamp"?'),
    ("a misspelt unit", "week, month", "week, mnth", "bad-value", 11, 111, 4, 'did you mean "month"?'),
    ("no role", "{role: insensitive}", "{}", "missing-key", 13, 3, 4, 'add "role: ..."'),
    ("no k", "k: 5}", "}", "missing-key", 15, 5, 1, 'add "k: ..."'),
    ("no hierarchy", "hierarchy: {kind: prefix, length: 5}", "", "missing-key", 8, 3, 3, 'add "hierarchy: ..."'),
    ("k in quotes", "k: 5", 'k: "5"', "wrong-type", 15, 29, 3, "write it without quotes"),
    ("a boolean as a value", "[female, male", "[true, male", "wrong-type", 9, 89, 4, "put it in quotes"),
    ("k too small", "k: 5", "k: 1", "out-of-range", 15, 29, 1, ""),
    ("a share above one", "p: 0.4", "p: 1.4", "out-of-range", 17, 53, 3, ""),
    ("patience of one", "patience: 0.4", "patience: 1", "out-of-range", 19, 35, 1, ""),
    ("a unit that is none", "time: 5s", "time: 5 sec", "bad-value", 18, 31, 5, ""),
    ("an empty list", "values: [female, male, other]", "values: []", "bad-length", 9, 80, 6, ""),
    ("half a range", "range: [1915, 2026]", "range: [1915]", "bad-value", 7, 83, 5, ""),
    ("a name with a space", "name: admissions", "name: ad missions", "bad-value", 2, 7, 11, "use letters, digits"),
    ("a version of the future", "version: 1", "version: 2", "bad-value", 1, 10, 1, ""),
    ("a list for a mapping", "max_delay: {time: 5s, records: 10000}", "max_delay: [5s]", "wrong-type", 18, 13, 9, ""),
    ("not YAML", "privacy: ", "privacy: [", "syntax", 15, 3, 1, "indented alike"),
]


def load_changed(tmp_path: Path, old: str, new: str) -> LoadedPolicy:
    text = EXAMPLE.read_text()
    assert old in text
    (tmp_path / "policy.yaml").write_text(text.replace(old, new, 1))
    return load(tmp_path / "policy.yaml", {})


def test_the_example_is_valid() -> None:
    loaded = load(EXAMPLE, {})
    assert loaded.policy.name == "admissions"
    assert loaded.policy.stream.max_delay.time == 5.0
    assert loaded.file("icd.csv").is_file()


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "column", "width", "hint"), [c[1:] for c in BROKEN], ids=[c[0] for c in BROKEN]
)
def test_broken_policy(
    tmp_path: Path, old: str, new: str, code: str, line: int, column: int, width: int, hint: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        load_changed(tmp_path, old, new)
    found = [d for d in caught.value.diagnostics if d.code == code]
    assert [(d.line, d.column, d.width) for d in found] == [(line, column, width)]
    assert hint in found[0].hint
    assert bool(hint) == bool(found[0].hint)


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "column", "hint"), [(*c[1:6], c[7]) for c in BROKEN], ids=[c[0] for c in BROKEN]
)
def test_check_tells_and_ends_with_3(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], old: str, new: str, code: str, line: int, column: int, hint: str
) -> None:
    """The same through the command: the place, the caret, the hint, no traceback."""
    path = tmp_path / "policy.yaml"
    path.write_text(EXAMPLE.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    assert run(["check", str(path)]) == 3
    told = capfd.readouterr().err
    assert f"policy.yaml:{line}:{column}: error {code}: " in told
    assert hint in told
    assert "Traceback" not in told


FILES = [
    # remark, content, code
    ("empty", b"", "empty-file"),
    ("comments only", b"# nothing\n", "wrong-type"),
    ("a list", b"- 1\n", "wrong-type"),
    ("Latin-1", b"name: Gr\xfcn\n", "not-utf8"),
    ("binary", b"name: a\0b\n", "nul-character"),
    ("not a policy by its size", b"# " + b"x" * 1_000_001, "file-too-large"),
]


@pytest.mark.parametrize(("content", "code"), [c[1:] for c in FILES], ids=[c[0] for c in FILES])
def test_files_that_are_no_policy(tmp_path: Path, content: bytes, code: str) -> None:
    (tmp_path / "p.yaml").write_bytes(content)
    with pytest.raises(PolicyError) as caught:
        load(tmp_path / "p.yaml", {})
    assert [d.code for d in caught.value.diagnostics] == [code]


def test_missing_file_and_folder(tmp_path: Path) -> None:
    for path, code in ((tmp_path / "none.yaml", "missing-file"), (tmp_path, "not-a-file")):
        with pytest.raises(PolicyError) as caught:
            load(path, {})
        assert [d.code for d in caught.value.diagnostics] == [code]


def test_all_findings_at_once_in_order(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("version: 3\nnme: x\nprivacy: []\nattributes: {a: {role: x}}\n")
    with pytest.raises(PolicyError) as caught:
        load(tmp_path / "p.yaml", {})
    assert [(d.line, d.code) for d in caught.value.diagnostics] == [
        (1, "missing-key"),
        (1, "bad-value"),
        (2, "unknown-key"),
        (3, "bad-length"),
        (4, "unknown-kind"),
    ]


def test_a_refused_secret_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        load_changed(tmp_path, "version: 1", "version: 1\nsecret: 918273645")
    assert "918273645" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "hint"), [('"5"', ""), ("${N}", '"${NAME}"'), ("5", "in quotes"), ("${T}", '"${NAME}"')]
)
def test_a_variable_of_digits_is_told_to_be_put_in_quotes(tmp_path: Path, given: str, hint: str) -> None:
    (tmp_path / "p.yaml").write_text(f"version: 1\nname: {given}\nattributes: {{}}\nprivacy: []\n")
    with pytest.raises(PolicyError) as caught:
        load(tmp_path / "p.yaml", {"N": "123", "T": "true"})
    found = [finding.hint for finding in caught.value.diagnostics if finding.line == 2]
    assert bool(found) == bool(hint)
    assert hint in "".join(found)


def test_one_finding_for_a_value_of_several_types(tmp_path: Path) -> None:
    model = "{model: alpha_k, attribute: diagnosis, k: 3, alpha: [1]}"
    with pytest.raises(PolicyError) as caught:
        load_changed(tmp_path, "{model: guarding_node, attribute: diagnosis, p: 0.4}", model)
    [finding] = caught.value.diagnostics
    assert finding.message == '"alpha" must be a number, a mapping (key: value) or text'


def test_variables_reach_the_models(tmp_path: Path) -> None:
    text = EXAMPLE.read_text().replace("subject:", "secret: ${S}\nsubject:")
    text = text.replace("{model: k_anonymity, k: 5}", "model: k_anonymity\n    k: ${K:-7}")
    (tmp_path / "p.yaml").write_text(text)
    policy = load(tmp_path / "p.yaml", {"S": "abcdefgh" * 4}).policy
    assert policy.secret is not None
    assert policy.secret.get_secret_value() == "abcdefgh" * 4
    assert policy.privacy[0].model_dump() == {"model": "k_anonymity", "k": 7}


def test_a_deep_inline_tree(tmp_path: Path) -> None:
    def deep(leaves: str) -> str:
        return "{kind: tree, tree: " + "".join(f"{{n{i}: " for i in range(50)) + leaves + "}" * 51

    loaded = load_changed(tmp_path, "{kind: prefix, length: 5}", deep("[a, b]"))
    assert loaded.policy.quasi_identifiers["zip"].hierarchy.kind == "tree"
    with pytest.raises(PolicyError) as caught:
        load_changed(tmp_path, "{kind: prefix, length: 5}", deep("5"))
    assert [d.message for d in caught.value.diagnostics] == ['"n49" must be a mapping (key: value) or a list']


WORDS = [
    *("{", "}", "[", "]", ": ", ",", "- ", "\n", "  ", "\t", '"', "'", "*", "&a ", "*a", "!!str ", "|", ">", "#", "\\"),
    *("null", "true", "-1", "0", ".nan", "1e999", "9" * 400, "${X}", "${X:-5}", "role", "kind", "tree", "\x85", "é"),
]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), changes=st.integers(1, 6))
def test_any_change_is_accepted_or_refused(tmp_path: Path, seed: int, changes: int) -> None:
    """Cut, insert, double and swap pieces of a valid policy: there must be findings or a policy, nothing else."""
    choose = random.Random(seed)
    text = EXAMPLE.read_text()
    for _ in range(changes):
        at = choose.randrange(len(text))
        to = min(len(text), at + choose.choice([0, 1, 3, 10, 60]))
        text = text[:at] + choose.choice([*WORDS, "", text[at:to] * 2, text[to : to + 9]]) + text[to:]
    (tmp_path / "p.yaml").write_bytes(text.encode())
    try:
        policy = load(tmp_path / "p.yaml", {}).policy
    except PolicyError as error:
        places = [(d.line, d.column) for d in error.diagnostics]
        lines = text.count("\n") + text.count("\r") + 1
    else:
        places, lines = [(0, 0)], 0
        assert policy.quasi_identifiers
    assert places
    assert all(line <= lines for line, _ in places)
