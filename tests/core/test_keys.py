"""The keys of a policy: slow to guess, quick to have, and none from an empty secret."""

from __future__ import annotations

import hashlib

import pytest

from stream_anon.core import keys
from stream_anon.core.keys import Keys

SECRET = "a secret only for the tests, of no value"


def test_the_root_key_is_dear_to_guess_and_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    scrypt = hashlib.scrypt

    def counted(*arguments: bytes, **options: int) -> bytes:
        calls.append(options)
        return scrypt(*arguments, **options)  # type: ignore[arg-type, call-overload, no-any-return]

    keys._root.cache_clear()
    monkeypatch.setattr(hashlib, "scrypt", counted)
    first, second = Keys(SECRET), Keys(SECRET)
    assert [(call["n"], call["r"], call["p"]) for call in calls] == [(2**15, 8, 1)]
    assert (first.value, first.group, first.ledger) == (second.value, second.group, second.ledger)


def test_keys_are_not_what_one_hash_of_the_secret_gives() -> None:
    mine = Keys(SECRET)
    quick = {
        hashlib.blake2b(SECRET.encode(), digest_size=32, person=p).digest() for p in (b"value", b"group", b"ledger")
    }
    assert not quick & {mine.value, mine.group, mine.ledger}
    assert len({mine.value, mine.group, mine.ledger}) == 3


def test_without_a_secret_keys_are_random_and_with_an_empty_one_stable() -> None:
    assert Keys(None).group != Keys(None).group
    assert Keys("").stable
