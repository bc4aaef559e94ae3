from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_anon.errors import PolicyError, Problem
from stream_anon.policy.reading.source import Source

BROKEN = [
    # remark, text, code, line, column
    ("a list left open", "a: [1\nb: 2", "syntax", 2, 2),
    ("a tab as indentation", "a:\n\tb: 1", "syntax", 2, 1),
    ("two colons", "a: b: c", "syntax", 1, 5),
    ("a control character", "a: \x07", "syntax", 1, 4),
    ("half a surrogate pair", 'a: "\\ud800"', "syntax", 1, 4),
    ("an escape beyond Unicode", 'a: "\\UFFFFFFFF"', "syntax", 1, 1),
    ("an unquoted variable in a flow mapping", "a: {b: ${B}}", "syntax", 1, 9),
    ("the same key twice", "a: 1\nb: 2\na: 3", "duplicate-key", 3, 1),
    ("a second document", "a: 1\n---\nb: 2", "second-document", 2, 1),
    ("a tag", "a: !!str 5", "tag", 1, 4),
    ("an alias of nothing", "a: *b", "unknown-alias", 1, 4),
    ("an alias of itself", "a: &a [*a]", "unknown-alias", 1, 8),
    ("a list as a key", "? [a]\n: 1", "bad-key", 1, 3),
    ("too deep", "[" * 5000, "too-deep", 1, 66),
    ("an unset variable", "a: 1\nb: x${NOT_SET}", "unset-variable", 2, 4),
    ("a variable without a name", "a: ${}", "bad-variable", 1, 4),
]


@pytest.mark.parametrize(("text", "code", "line", "column"), [c[1:] for c in BROKEN], ids=[c[0] for c in BROKEN])
def test_broken_yaml(text: str, code: str, line: int, column: int) -> None:
    with pytest.raises(PolicyError) as caught:
        Source(text, "p.yaml", {})
    [finding] = caught.value.diagnostics
    assert (finding.code, finding.line, finding.column) == (code, line, column)


SCALARS = [
    # remark, text, value
    ("YAML 1.1 would read false", "NO", "NO"),
    ("YAML 1.1 would read eight", "010", 10),
    ("quoted digits stay text", '"5"', "5"),
    ("a date is text", "2024-01-02", "2024-01-02"),
    ("a duration is text", "5s", "5s"),
    ("a point makes a float", "5.", 5.0),
    ("octal", "0o17", 15),
    ("minus infinity", "-.inf", -math.inf),
    ("nothing is null", "", None),
    ("beyond any integer in use", "9" * 400, math.inf),
    ("a variable is resolved again", "${N}", 7),
    ("a default is resolved again", "${M:-0.5}", 0.5),
    ("a quoted variable stays text", '"${N}"', "7"),
    ("an empty variable counts as unset", "${EMPTY:-x}", "x"),
    ("inside other text", "${HOST}:${PORT:-9092}", "broker:9092"),
    ("a doubled dollar escapes", "$${N}", "${N}"),
]


@pytest.mark.parametrize(("text", "value"), [c[1:] for c in SCALARS], ids=[c[0] for c in SCALARS])
def test_scalars(text: str, value: object) -> None:
    data = Source(f"a: {text}", "p.yaml", {"N": "7", "HOST": "broker", "EMPTY": ""}).data
    assert data == {"a": value}
    assert type(data["a"]) is type(value)


def test_unset_variable_is_named_with_its_remedy() -> None:
    with pytest.raises(PolicyError) as caught:
        Source("a: ${PASSPHRASE}", "p.yaml", {})
    [finding] = caught.value.diagnostics
    assert "PASSPHRASE" in finding.message
    assert "${PASSPHRASE:-...}" in finding.hint


def test_environment_is_remembered() -> None:
    source = Source("a: ${A}\nb: ${B:-x}\nc: plain", "p.yaml", {"A": "1"})
    assert [source.from_environment((key,)) for key in ("a", "b", "c", "nowhere")] == [True, False, False, False]


PLACES = [
    # remark, path, key, place
    ("a value", ("a", "b"), False, (2, 6, 3)),
    ("its key", ("a", "b"), True, (2, 3, 1)),
    ("a mapping is shown by its key", ("a",), False, (1, 1, 1)),
    ("an entry of a list", ("c", 1), False, (3, 8, 2)),
    ("an alias leads to its anchor", ("d", "b"), False, (2, 6, 3)),
    ("a missing key falls back to its parent", ("a", "zzz", 3), False, (1, 1, 1)),
    ("a mapping in a list begins at its brace", ("e", 0, "zzz"), False, (6, 5, 1)),
    ("nothing at all falls back to the top", ("zzz",), False, (1, 1, 1)),
]


@pytest.mark.parametrize(("path", "key", "place"), [c[1:] for c in PLACES], ids=[c[0] for c in PLACES])
def test_places(path: tuple[str | int, ...], key: bool, place: tuple[int, int, int]) -> None:
    source = Source("a: &x\n  b: one\nc: [1, 22]\nd: *x\ne:\n  - {f: 1}\n", "p.yaml", {})
    assert source.locate(path, key) == place


def test_problem_gets_its_place() -> None:
    finding = Source("a: 1\nbcd: efg", "p.yaml", {}).diagnostic(Problem(("bcd",), "code", "message", "hint"))
    assert str(finding) == "p.yaml:2:6: error code: message (hint)"
    assert finding.width == 3


def test_aliases_of_aliases_are_refused() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(PolicyError) as caught:
        Source("\n".join(lines), "p.yaml", {})
    assert caught.value.diagnostics[0].code == "too-many-values"


@given(st.text(max_size=60) | st.text("{}[]:,-?&*!|>'\"%@` \n\t#ab$\\", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found: tuple[object, ...] = (Source(text, "p.yaml", {}).data,)
    except PolicyError as error:
        found = error.diagnostics
    assert found
