"""What the parts published, put together in the order of group ids: where a group stands must not tell its part."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import numpy as np
import numpy.typing as npt

from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Ints
from stream_anon.formats.format import Format, TableError
from stream_anon.formats.packing import PACKED, Packed
from stream_anon.formats.tables import format_of
from stream_anon.local.parts.place import SpillError

AT_ONCE = 20_000
"""Groups written between two reports of progress."""

BUCKETS = 32
"""Ranges of ids by which columns are merged: so much of the output is in memory at once."""

_NO_TYPE = "a column has values of different types: Parquet cannot hold it, CSV can"

Progress = Callable[[float], None]


def can_write(path: Path) -> bool:
    """Tell whether a file of that name can be put together from parts."""
    made = format_of(path)
    return type(made).pieces is not Format.pieces or made.name == "parquet"


def write_fragment(place: Path, groups: Sequence[Group], target: Path, quote_formulas: bool) -> None:
    """Write the groups of one part, ordered by their ids, so that `merge` finds them; whole or not at all."""
    made = format_of(target)
    draft = place.with_suffix(".draft")
    pieces = made.pieces(groups, quote_formulas)
    ids = np.frombuffer(bytes.fromhex("".join([group.id for group in groups])), ">u8").astype(np.uint64)
    if pieces is None:
        sizes = np.fromiter(map(len, groups), np.int64, len(groups))
        head = _write_columns(draft, groups, ids, sizes)
    else:
        head, found = pieces
        sizes = np.fromiter(map(len, found), np.int64, len(found))
        with draft.open("wb") as file:
            file.writelines(found)
    index = msgspec.msgpack.encode((head, ids.tobytes(), sizes.tobytes()))
    place.with_suffix(".index").write_bytes(index)
    draft.replace(place)


def merge(places: Sequence[Path], target: Path, file: IO[bytes], progress: Progress) -> None:
    """Write all fragments into an open file, group by group, in the order of ids."""
    if format_of(target).name == "parquet":
        _merge_columns(places, file, progress)
    elif (suffix := target.suffix.lower()) in PACKED:
        packed = Packed(file, suffix)
        _merge_lines(places, cast(IO[bytes], packed), progress)
        packed.finish()
    else:
        _merge_lines(places, file, progress)


def _merge_lines(places: Sequence[Path], file: IO[bytes], progress: Progress) -> None:
    indexes = [msgspec.msgpack.decode(place.with_suffix(".index").read_bytes()) for place in places]
    ids = [np.frombuffer(own, dtype=np.uint64) for _, own, _ in indexes]
    sizes = [np.frombuffer(own, dtype=np.int64) for _, _, own in indexes]
    whose = np.repeat(np.arange(len(places)), [len(own) for own in ids])
    for place, own in zip(places, sizes, strict=True):
        if place.stat().st_size != own.sum():
            raise _damaged(place)
    begins = np.concatenate([np.cumsum(own) - own for own in sizes]) if sizes else np.empty(0, dtype=np.int64)
    file.write(next((head for head, _, _ in indexes if head), b""))
    if not len(whose):
        return
    order = np.argsort(np.concatenate(ids), kind="stable")
    ends = begins + np.concatenate(sizes)
    with ExitStack() as stack:
        maps = [_mapped(stack, place) for place in places]
        for start in range(0, len(order), AT_ONCE):
            some = order[start : start + AT_ONCE]
            spans = zip(whose[some].tolist(), begins[some].tolist(), ends[some].tolist(), strict=True)
            file.write(b"".join([maps[part][a:b] for part, a, b in spans]))
            progress(min(1.0, (start + AT_ONCE) / len(order)))


def _mapped(stack: ExitStack, place: Path) -> Any:
    if not place.stat().st_size:
        return b""
    opened = stack.enter_context(place.open("rb"))
    return stack.enter_context(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))


def _bucket(ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    return (ids >> np.uint64(64 - BUCKETS.bit_length() + 1)).astype(np.int64)


def _write_columns(draft: Path, groups: Sequence[Group], ids: npt.NDArray[np.uint64], sizes: Ints) -> bytes:
    """Write groups as Arrow batches, one for each bucket: they are read once, and soon.

    Return the names of the columns that showed no type, as no row has a value in them.
    """
    from stream_anon.formats.arrow.published import published_table, solid
    from stream_anon.formats.parquet import arrow

    if not groups:
        draft.touch()
        return b""
    pa = arrow()
    table = _typed(partial(published_table, groups))
    shown = table.schema
    types = solid(shown, groups)
    if types != shown:
        table = _typed(partial(published_table, groups, types))
    rows = np.append(0, np.cumsum(sizes))
    ends = rows[np.searchsorted(_bucket(ids), np.arange(BUCKETS), side="right")].tolist()
    with pa.ipc.new_file(draft, types, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        for start, end in zip([0, *ends], ends, strict=False):
            writer.write_batch(pa.record_batch(table.slice(start, end - start).to_struct_array().combine_chunks()))
    return msgspec.msgpack.encode([field.name for field in shown if pa.types.is_null(field.type)])


def _merge_columns(places: Sequence[Path], file: IO[bytes], progress: Progress) -> None:
    from stream_anon.formats.parquet import arrow

    pa, writer = arrow(), None
    with ExitStack() as stack:
        parts = [stack.enter_context(_Buckets(place)) for place in places if place.stat().st_size]
        types = _types(pa, parts)
        for bucket in range(BUCKETS):
            found = [part.read(bucket) for part in parts]
            ids = np.concatenate([own for own, _, _ in found]) if found else np.empty(0, dtype=np.uint64)
            if len(ids):
                if writer is None:
                    writer = stack.enter_context(pa.parquet.ParquetWriter(file, types))
                whole = pa.concat_tables([_typed(partial(table.cast, types)) for _, _, table in found])
                writer.write_table(whole.take(pa.array(in_order(ids, np.concatenate([own for _, own, _ in found])))))
            progress((bucket + 1) / BUCKETS)


def in_order(ids: npt.NDArray[np.uint64], sizes: Ints) -> Ints:
    """Return the rows of groups that follow one another, in the order of the groups' ids.

    >>> in_order(np.array([8, 5], dtype=np.uint64), np.array([2, 3])).tolist()
    [2, 3, 4, 0, 1]
    """
    order = np.argsort(ids, kind="stable")
    begins, taken = (np.cumsum(sizes) - sizes)[order], sizes[order]
    return np.asarray(np.repeat(begins - (np.cumsum(taken) - taken), taken) + np.arange(int(sizes.sum())))


class _Buckets:
    """The batches of a fragment by their buckets."""

    def __init__(self, place: Path) -> None:
        from stream_anon.formats.parquet import arrow

        pa = arrow()
        self._raw = pa.memory_map(str(place))
        try:
            self._file = pa.ipc.open_file(self._raw)
        except pa.ArrowInvalid:
            raise _damaged(place) from None
        untyped, ids, sizes = msgspec.msgpack.decode(place.with_suffix(".index").read_bytes())
        self.untyped = frozenset(msgspec.msgpack.decode(untyped))
        self.types = self._file.schema
        self._ids, self._sizes = np.frombuffer(ids, dtype=np.uint64), np.frombuffer(sizes, dtype=np.int64)
        self._ends = np.searchsorted(_bucket(self._ids), np.arange(-1, BUCKETS), side="right").tolist()

    def __enter__(self) -> _Buckets:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def read(self, bucket: int) -> tuple[npt.NDArray[np.uint64], Ints, Any]:
        """Return the ids and sizes of the groups of a bucket, and their rows."""
        from stream_anon.formats.parquet import arrow

        span = slice(self._ends[bucket], self._ends[bucket + 1])
        return self._ids[span], self._sizes[span], arrow().Table.from_batches([self._file.get_batch(bucket)])


def _damaged(place: Path) -> SpillError:
    return SpillError(f"{place}: is damaged; remove the folder, and begin again")


def _types(pa: Any, parts: Sequence[_Buckets]) -> Any:
    """Return the types of the whole: those of the first part that shows one. Text never becomes a number, or is one."""
    if not parts:
        return None
    found = []
    for field in parts[0].types:
        kinds = [part.types.field(field.name).type for part in parts if field.name not in part.untyped]
        kind = kinds[0] if kinds else field.type
        if any(_sort(pa, kind) != _sort(pa, each) for each in kinds):
            raise TableError(_NO_TYPE)
        found.append(pa.field(field.name, kind))
    return pa.schema(found)


def _sort(pa: Any, kind: Any) -> str:
    """Return which values a type holds: those of another sort would be converted without a word."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "number"
    return "nested" if pa.types.is_nested(kind) else str(kind)


def _typed(make: Callable[[], Any]) -> Any:
    """Return a table, or say that a column has no one type."""
    from stream_anon.formats.parquet import arrow

    pa = arrow()
    try:
        return make()
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError):
        raise TableError(_NO_TYPE) from None
