"""The ledger and its text: any ledger survives the round trip, any other text is refused with its reason."""

from __future__ import annotations

import base64
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_anon.kafka.transport import Committed
from stream_anon.worker.ledger.budget import INLINE
from stream_anon.worker.ledger.codec import Codec, LedgerError, b85encode, digest_of
from stream_anon.worker.ledger.ledger import Ledger, Place, Seen, contains, without
from stream_anon.worker.ledger.mark import Mark, MarkSeal, mark_room
from stream_anon.worker.ledger.packing import Reader, Writer, partitions_of, unpack_members, unpack_waiting
from stream_anon.worker.ledger.pointer import PointerSeal

PLACE = Place("cluster", "topic", 3)
CODEC = Codec.of(b"a secret")

refs = st.tuples(st.integers(0, 40), st.one_of(st.integers(0, 3000), st.integers(0, 2**52)))
groups = st.lists(st.lists(refs, min_size=1, max_size=12, unique=True).map(lambda m: np.array(sorted(m))), max_size=30)


@st.composite
def ledgers(draw: st.DrawFn) -> Ledger:
    low = draw(st.one_of(st.integers(0, 100), st.integers(0, 2**50)))
    above = draw(st.sets(st.integers(0, 3000), max_size=400))
    above |= {3001 + a for a in draw(st.sets(st.integers(0, 2**40), max_size=3))}
    waiting = np.array(sorted(low + a for a in above), dtype=np.int64)
    top = int(waiting[-1]) + 1 if above else low
    announced = tuple(draw(groups))
    return Ledger(
        PLACE,
        draw(st.binary(min_size=8, max_size=8)),
        top + draw(st.integers(0, 500)),
        waiting,
        announced,
        draw(st.integers(0, 2**64 - 1)),
        draw(st.integers(0, 100)),
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(0, 2**40)),
        {party: draw(st.integers(0, 2**40)) for party in partitions_of(announced)},
        Seen(draw(st.binary(min_size=4, max_size=4)), tuple(draw(st.lists(st.integers(0, 2**50), max_size=9)))),
    )


@given(ledgers())
def test_decode_undoes_encode(ledger: Ledger) -> None:
    text = CODEC.encode(ledger)
    assert CODEC.decode(text, PLACE) == ledger
    assert text.offset == ledger.low
    assert text.metadata.isascii()
    assert text.metadata.endswith("\0")
    assert text.metadata.count("\0") == 1
    assert CODEC.decode(Committed(text.offset, text.metadata + "what a client left behind"), PLACE) == ledger


@given(ledgers(), st.data())
def test_a_changed_text_is_refused(ledger: Ledger, data: st.DataObject) -> None:
    text = CODEC.encode(ledger)
    at = data.draw(st.integers(0, len(text.metadata) - 2))
    other = data.draw(st.characters(min_codepoint=33, max_codepoint=126).filter(lambda c: c != text.metadata[at]))
    changed = text.metadata[:at] + other + text.metadata[at + 1 :]
    with pytest.raises(LedgerError):
        CODEC.decode(Committed(text.offset, changed), PLACE)


@given(st.text(max_size=200))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(LedgerError):
        CODEC.decode(Committed(0, text), PLACE)


LEDGER = Ledger(PLACE, b"12345678", 10, np.array([4, 7]), (np.array([(3, 1), (4, 9)]),), 5, 4, 77, 9, {3: 9, 4: 2})
CASES = [
    ("empty", "", 4, PLACE, CODEC, "a tool committed an offset"),
    ("empty", "\0rest", 4, PLACE, CODEC, "text after the end does not count"),
    ("version", "9abc", 4, PLACE, CODEC, "a later version"),
    ("version", "1abc", 4, PLACE, CODEC, "an earlier version"),
    ("unreadable", None, 4, PLACE, Codec.of(b"another secret"), "the secret was changed"),
    ("misplaced", None, 4, Place("cluster", "topic anew", 3), CODEC, "the topic was made anew"),
    ("misplaced", None, 4, Place("other", "topic", 3), CODEC, "the topic was mirrored to another cluster"),
    ("misplaced", None, 4, Place("cluster", "topic", 2), CODEC, "copied to another partition"),
    ("misplaced", None, 4, Place("cluster", "topic", 3, "another"), CODEC, "copied from another group"),
    ("moved", None, 5, PLACE, CODEC, "a tool reset the offset and kept the text"),
]


@pytest.mark.parametrize(("code", "text", "offset", "place", "codec", "remark"), CASES, ids=[c[-1] for c in CASES])
def test_each_refusal_has_its_code(
    code: str, text: str | None, offset: int, place: Place, codec: Codec, remark: str
) -> None:
    text = CODEC.encode(LEDGER).metadata if text is None else text
    with pytest.raises(LedgerError) as caught:
        codec.decode(Committed(offset, text), place)
    assert caught.value.code == code


def test_the_text_tells_nothing_without_the_secret() -> None:
    one = CODEC.encode(LEDGER)
    two = CODEC.encode(replace(LEDGER, sequence=10))
    assert one != two
    assert sum(a == b for a, b in zip(one.metadata[1:], two.metadata[1:], strict=False)) < len(one.metadata) / 4
    assert CODEC.encode(LEDGER) == one


def test_what_fits() -> None:
    rng = np.random.default_rng(1)
    waiting = np.flatnonzero(rng.random(24_000) < 0.5).astype(np.int64)
    full = Ledger(PLACE, b"12345678", 24_000, waiting)
    assert INLINE.fits(CODEC.encode(full)), "a random bitset of 24,000 offsets"
    wide = replace(full, position=60_000, waiting=np.flatnonzero(rng.random(60_000) < 0.5))
    assert not INLINE.fits(CODEC.encode(wide))
    members = rng.permutation(1_900).reshape(190, 10)
    announced = tuple(np.array([(3, offset) for offset in sorted(m)]) for m in members)
    text = CODEC.encode(Ledger(PLACE, b"12345678", 1_900, announced=announced, parties={3: 70_000}))
    assert INLINE.fits(text), "1,900 announced rows in groups of 10"
    assert len(text.metadata) <= INLINE.limit + 1


def test_a_row_that_is_held_back_for_long_takes_no_room() -> None:
    """A billion records came since: neither the text nor the memory to make it grows with them."""
    waiting = np.array([7, *range(1_000_000_000, 1_000_000_100)])
    held = Ledger(PLACE, b"12345678", 1_000_000_200, waiting)
    tracemalloc.start()
    text = CODEC.encode(held)
    assert CODEC.decode(text, PLACE) == held
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    assert len(text.metadata) < 700


@given(ledgers(), st.lists(st.integers(0, 4000), max_size=50))
def test_finished_and_unfinished_agree(ledger: Ledger, above: list[int]) -> None:
    offsets = np.array([max(0, ledger.low - 50) + a for a in above], dtype=np.int64)
    assert ledger.unfinished(offsets).tolist() == [not ledger.finished(int(o)) for o in offsets]


@given(st.sets(st.integers(0, 60)), st.lists(st.integers(0, 60)))
def test_sorted_set_operations(have: set[int], other: list[int]) -> None:
    ascending, others = np.array(sorted(have), dtype=np.int64), np.array(other, dtype=np.int64)
    assert without(ascending, others).tolist() == sorted(have - set(other))
    assert contains(ascending, others).tolist() == [o in have for o in other]


def test_a_digest_depends_on_key_content_and_order() -> None:
    base = digest_of(b"key", [b"a", b"b"])
    others = [digest_of(b"kez", [b"a", b"b"]), digest_of(b"key", [b"b", b"a"]), digest_of(b"key", [b"ab"])]
    assert base not in others


@given(st.binary(max_size=200))
def test_texts_are_base85_as_the_library_writes_it(data: bytes) -> None:
    assert b85encode(data) == base64.b85encode(data).decode()


def test_sizes_beyond_the_text_are_refused_before_room_is_made() -> None:
    out = Writer()
    for number in (1, 2**40, 1, 3, 7, 0):  # one group of 2^40 members, all in one place
        out.number(number)
    with pytest.raises(ValueError, match="more members"):
        unpack_members(Reader(out.bytes()))
    out = Writer()
    for number in (2**40, 0):  # so many offsets that wait, all in one place
        out.number(number)
    with pytest.raises(ValueError, match="no such offsets"):
        unpack_waiting(Reader(out.bytes()), 2**41)


@given(st.integers(0, 999), st.integers(0, 2**60), st.binary(max_size=50), st.integers(0, 2**60))
def test_a_pointer_leads_to_one_record_of_one_place(partition: int, offset: int, record: bytes, low: int) -> None:
    seal = PointerSeal(b"a secret")
    pointer = seal.point("topic id", partition, offset, record)
    text = seal.encode(pointer, low, PLACE)
    assert seal.decode(text, PLACE) == pointer
    assert text.offset == low
    assert len(text.metadata) <= 120
    assert INLINE.fits(text)
    assert pointer != seal.point("topic anew", partition, offset, record)
    assert pointer != seal.point("topic id", partition, offset, record + b"x")
    assert PointerSeal(b"another secret").digest(record) != pointer.digest
    others = (replace(PLACE, group="another"), replace(PLACE, partition=PLACE.partition + 1))
    found = [refused(seal, text, place) for place in others]
    found += [refused(PointerSeal(b"another secret"), text, PLACE), refused(seal, Committed(low, "Pabc\0"), PLACE)]
    assert found == ["misplaced", "misplaced", "unreadable", "unreadable"]


def refused(seal: PointerSeal, text: Committed, place: Place) -> str:
    with pytest.raises(LedgerError) as caught:
        seal.decode(text, place)
    return caught.value.code


sequences = st.dictionaries(st.integers(0, 999), st.integers(0, 2**35), max_size=12)


@given(sequences, sequences)
def test_a_mark_is_opened_by_its_own_group_alone(announced: dict[int, int], written: dict[int, int]) -> None:
    mark, seal = Mark(announced, written), MarkSeal.of(b"a secret")
    data = seal.seal(mark, PLACE)
    assert seal.open(data, replace(PLACE, partition=0)) == mark
    assert len(data) <= mark_room(max([0, *announced, *written]) + 1)
    for other in (replace(PLACE, group="another"), replace(PLACE, topic_id="anew"), replace(PLACE, cluster_id="far")):
        assert seal.open(data, other) is None
    assert MarkSeal.of(b"another secret").open(data, PLACE) is None
    assert seal.open(data[:-1], PLACE) is None
    assert seal.open(b"", PLACE) is None
