"""What the policy may say of the publication of a field, and what `check` says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import ValidationError

from stream_anon.auditor.policy import rules_of
from stream_anon.cli import run_command as run
from stream_anon.core.fields import PUBLISH_KINDS, ChangeSettings, Materials
from stream_anon.policy import Policy, load, problems

SECRET = "kX2-hj41_qPz9wLtVb7nRc3mYd8sFg5a"
DAILY = {"kind": "pseudonym", "scope": {"rotate": "1d", "by": "at"}}
QUASI = {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "flat", "values": ["f", "m"]}}


def policy(attributes: dict[str, Any], **more: Any) -> dict[str, Any]:
    fields = {"who": {"role": "identifier"}, "sex": QUASI, **attributes}
    usual = {"version": 1, "name": "t", "subject": "who", "secret": SECRET, "attributes": fields}
    return usual | {"privacy": [{"model": "k_anonymity", "k": 5}]} | more


def field(publish: Any, role: str = "identifier", **more: Any) -> dict[str, Any]:
    return {"x": {"role": role, "publish": publish, **more}}


def subject(publish: Any) -> dict[str, Any]:
    return {"who": {"role": "identifier", "publish": publish}}


def pseudonym(**scope: Any) -> dict[str, Any]:
    return {"kind": "pseudonym", "scope": scope}


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("a stable token of the subject that is not said to be one", subject("pseudonym"), "linking-token"),
    ("a purpose is no rotation", subject(pseudonym(purpose="billing")), "linking-token"),
    ("a rotation without a time", subject(pseudonym(rotate="1d")), "needs-timestamp"),
    ("a time without a rotation", field(pseudonym(by="at")), "unused-key"),
    ("a rotation within a second", field(pseudonym(rotate="10ms", by="at")), "out-of-range"),
    ("a value that tells its own period", field(pseudonym(rotate="1d", by="x")), "overlapping-names"),
    ("a time inside an attribute", field(pseudonym(rotate="1d", by="x.at")), "overlapping-names"),
    (
        "a time inside a request",
        {"ill": {"role": "sensitive", "psf": "wish"}} | field(pseudonym(rotate="1d", by="wish.at")),
        "overlapping-names",
    ),
    ("an empty part of a name", field(pseudonym(rotate="1d", by="a..b")), "bad-name"),
    ("stable and rotating", subject({**DAILY, "stable": True}), "either-or"),
    ("an identifier as it came", field("keep"), "publish-and-role"),
    ("a sensitive value that is dropped", field("drop", "sensitive"), "publish-and-role"),
    ("a token of a sensitive value", field("pseudonym", "sensitive"), "publish-and-role"),
    ("a shift of a sensitive date", field({"kind": "shift", "days": 3}, "sensitive"), "publish-and-role"),
    ("a mask of a number", field("mask", "sensitive", type="integer"), "publish-and-type"),
    ("a rounded word", field({"kind": "round", "step": 1}, "sensitive"), "publish-and-type"),
    ("a fraction for integers", field({"kind": "round", "step": 0.5}, "sensitive", type="integer"), "publish-and-type"),
    ("a change of a list", field("mask", "insensitive", list=True), "publish-and-list"),
    ("rounding without a step", field("round"), "missing-key"),
    ("a top below the bottom", field({"kind": "round", "bottom": 3, "top": 3}), "not-increasing"),
    ("a shifted subject", subject({"kind": "shift", "days": 3}), "publish-and-role"),
    ("a pattern that can stall", field({"kind": "mask", "pattern": "(a+)+b"}), "bad-pattern"),
    ("a pattern and ends", field({"kind": "mask", "pattern": "a", "first": 1}), "either-or"),
    ("unmatched without a pattern", field({"kind": "mask", "unmatched": "keep"}), "unused-key"),
]


@pytest.mark.parametrize(("attributes", "code"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_contradictions_are_refused(attributes: dict[str, Any], code: str) -> None:
    found = problems(Policy.model_validate(policy(attributes)))
    assert [problem.code for problem in found] == [code]
    assert all(problem.hint and "publish" in problem.path for problem in found)


def test_keyed_kinds_need_a_secret_and_a_shift_a_subject() -> None:
    for publish in (DAILY, {"kind": "shift", "days": 3}, {"kind": "hash_prefix", "length": 1, "people": 9}):
        found = problems(Policy.model_validate(policy(field(publish), secret=None)))
        assert [problem.code for problem in found] == ["needs-secret"]
    found = problems(Policy.model_validate(policy(field({"kind": "shift", "days": 3}), subject=None)))
    assert [problem.code for problem in found] == ["needs-subject"]


def checked(tmp_path: Path, capsys: pytest.CaptureFixture[str], attributes: dict[str, Any]) -> tuple[int, str]:
    path = tmp_path / "policy.yaml"
    path.write_text(json.dumps(policy(attributes)))
    code = run(["check", str(path)])
    said = capsys.readouterr()
    return code, said.out + said.err


def test_check_refuses_an_unrotated_token_on_the_subject(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = checked(tmp_path, capsys, subject("pseudonym"))
    assert code != 0
    assert "linking-token" in said


@pytest.mark.parametrize(
    ("attributes", "warned"),
    [
        (subject({"kind": "pseudonym", "stable": True}), "linking-token"),
        (field("pseudonym"), "linking-token"),
        (field({"kind": "hash_prefix", "length": 4, "people": 1000}), "prefix-too-long"),
        (subject(DAILY), None),
        (field({"kind": "hash_prefix", "length": 1, "people": 1000}), None),
    ],
)
def test_check_warns_of_what_links_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], attributes: dict[str, Any], warned: str | None
) -> None:
    code, said = checked(tmp_path, capsys, attributes)
    assert code == 0
    for word in ("linking-token", "prefix-too-long"):
        assert (word in said) == (word == warned)


def test_a_misspelt_kind_is_named_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for publish in ("maks", {"kind": "maks"}):
        code, said = checked(tmp_path, capsys, field(publish))
        assert code != 0
        assert 'mean "mask"?' in said
    code, said = checked(tmp_path, capsys, field({"kind": "mask", "frist": 1}))
    assert '"first"' in said


def test_the_schema_knows_every_kind_and_the_bare_words() -> None:
    schema = Policy.model_json_schema()
    assert {"Mask", "Shift", "Pseudonym"} <= schema["$defs"].keys()
    [words, _] = schema["$defs"]["Insensitive"]["properties"]["publish"]["anyOf"]
    assert words == {"enum": ["drop", "keep", "mask", "pseudonym", "redact", "round"]}
    assert set(PUBLISH_KINDS.words) == {
        "drop", "keep", "mask", "pseudonym", "redact", "round", "shift", "hash_prefix",
    }  # fmt: skip


def test_a_policy_file_may_say_one_word(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(
        json.dumps(policy(field("redact", "insensitive") | {"y": {"role": "insensitive", "publish": "drop"}}))
    )
    assert load(path).policy.published == ("x",)


def test_check_tells_how_many_rows_of_a_sample_cannot_be_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, data = tmp_path / "policy.yaml", tmp_path / "sample.jsonl"
    path.write_text(json.dumps(policy(field({"kind": "round", "step": 10}))))
    data.write_text(
        "".join(json.dumps({"who": i, "sex": "f", "x": x}) + "\n" for i, x in enumerate([1, "2", "z", None]))
    )
    assert run(["check", str(path), "--data", str(data)]) == 0
    said = capsys.readouterr()
    assert "value-not-changed: 2 of 4 rows" in said.out + said.err


class Reverse(ChangeSettings):
    """A kind of another distribution."""

    kind: Literal["reverse"]

    def build(self, materials: Materials) -> Any:
        return lambda value, beside: str(value)[::-1]


def test_a_program_may_add_a_kind_and_the_auditor_says_that_it_does_not_know_it(tmp_path: Path) -> None:
    PUBLISH_KINDS.add(Reverse)
    try:
        data = policy(field("reverse"))
        assert problems(Policy.model_validate(data)) == []
        [unjudged] = rules_of(data, tmp_path).unjudged
        assert unjudged.startswith("x: what is published of it")
    finally:
        PUBLISH_KINDS.remove(Reverse)
    with pytest.raises(ValidationError):
        Policy.model_validate(data)
