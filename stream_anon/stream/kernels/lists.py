"""Compiled linked lists of slots: many at once, a row is put into one or taken out of it in constant time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.core.hierarchy import Ints
from stream_anon.core.kernels import inner, kernel

NOT_LISTED = -2
NOTHING = -1


class Lists(NamedTuple):
    """Lists of slots: `head` is the newest slot of each list, `after` the next older, `before` the next newer one.

    `list_of` says in which list a slot is, `NOT_LISTED` for none.
    """

    head: Ints
    after: Ints
    before: Ints
    list_of: Ints


def new_lists(count: int, slots: int) -> Lists:
    """Return so many empty lists for so many slots."""
    nothing = np.full(slots, NOTHING, dtype=np.int64)
    return Lists(np.full(count, NOTHING, dtype=np.int64), nothing, nothing.copy(), np.full(slots, NOT_LISTED))


def enlarged(lists: Lists, count: int, slots: int) -> Lists:
    """Return the same lists with room for more lists and slots."""
    more = new_lists(count, slots)
    for old, new in zip(lists, more, strict=True):
        new[: len(old)] = old
    return more


@inner
def put(lists: Lists, slot: int, to: int) -> None:
    """Put a slot into a list, as its newest."""
    older = lists.head[to]
    lists.after[slot], lists.before[slot], lists.list_of[slot] = older, NOTHING, to
    lists.head[to] = slot
    if older >= 0:
        lists.before[older] = slot


@inner
def take(lists: Lists, slot: int) -> None:
    """Take a slot out of its list, if it is in one."""
    if lists.list_of[slot] < 0:
        return
    older, newer = lists.after[slot], lists.before[slot]
    if newer >= 0:
        lists.after[newer] = older
    else:
        lists.head[lists.list_of[slot]] = older
    if older >= 0:
        lists.before[older] = newer
    lists.list_of[slot] = NOT_LISTED


@kernel
def put_all(lists: Lists, slots: Ints, to: Ints) -> None:
    """Put each slot into its list."""
    for i in range(len(slots)):
        put(lists, slots[i], to[i])


@kernel
def take_all(lists: Lists, slots: Ints) -> None:
    """Take each slot out of its list."""
    for i in range(len(slots)):
        take(lists, slots[i])


def members(lists: Lists, which: int, count: int) -> Ints:
    """Return the slots of one list, which has so many, the newest first."""
    found = np.empty(count, dtype=np.int64)
    _members(lists, which, found)
    return found


@kernel
def _members(lists: Lists, which: int, found: Ints) -> None:
    slot = lists.head[which]
    for i in range(len(found)):
        found[i] = slot
        slot = lists.after[slot]
