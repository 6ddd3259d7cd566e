"""Columns to the bytes of sends: whole arrays at a time.

    head 20 | body | properties length 2 | properties      one element, as `pocketmq.protocol.message.batch` draws it

The elements of one array are contiguous in one Arrow buffer, so a batch of rows [i, j) is a slice of it, sent without a
copy. The id of a row depends only on its writer and its number: a hash of a text that names the write, the batch and
the partition, and the row's number. A task that runs again over the same rows creates the same ids.

    id, 16 bytes      hash 6 | row 4 | zeros 4 | hash 2

Official clients have a time there, in milliseconds since the first of the month, where these have zeros. The tools of
4.9 look for a message from that time on, so they look from the first of the month on.
"""

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.record import MAX_PROPERTIES_BYTES

from ...errors import OptionError
from .slices import batch_slices, hexadecimal

RESERVED: Final = frozenset(
    value
    for name, value in vars(names).items()
    if name.isupper() and isinstance(value, str) and len(value) > 1
)
"""Property names with a meaning in the protocol."""
OWN_COLUMNS: Final = {names.KEYS: "keys", names.TAGS: "tags", names.SHARDING_KEY: "shardingKey"}
"""Names that a message carries for its consumers, with the column of the sink for each."""
NOT_SENT: Final = RESERVED - OWN_COLUMNS.keys()
"""Names that clients and brokers set: sent once more they would be wrong (an id, a region), or act once more (a delay,
a transaction, retries)."""
_HEAD: Final = np.dtype(
    [("total", ">i4"), ("magic", ">i4"), ("crc", ">i4"), ("flag", ">i4"), ("body", ">i4")]
)
assert _HEAD.itemsize == 20
_ID_ROWS: Final = 1 << 32

COLUMNS: Final = {
    "body": ("binary", "string"),
    "topic": ("string",),
    "keys": ("string", "array<string>"),
    "tags": ("string",),
    "properties": ("map<string,string>",),
    "brokerName": ("string",),
    "queueId": ("int",),
    "shardingKey": ("string",),
    "flag": ("int",),
    "delayTimeLevel": ("int",),
    "deliverTimestamp": ("timestamp",),
    "messageId": ("string",),
}
"""Columns of the sink with their allowed Spark types. Only `body` is required, and `topic` if the option is not set."""


def row_ids(writer: str, first: int, count: int) -> Any:
    """The UNIQ_KEYs of rows [first, first + count) of one writer, 32 hexadecimal digits each."""
    if first + count > _ID_ROWS:
        raise OptionError("a partition", f"must have at most {_ID_ROWS} rows: repartition the data")
    raw = np.empty((count, 16), dtype=np.uint8)
    digest = np.frombuffer(hashlib.blake2b(writer.encode(), digest_size=8).digest(), dtype=np.uint8)
    raw[:, :6], raw[:, 14:] = digest[:6], digest[6:]
    raw[:, 10:14] = 0
    raw[:, 6:10] = np.arange(first, first + count).astype(">u4").view(np.uint8).reshape(count, 4)
    return hexadecimal(raw)


def property_texts(batch: Any, ids: Any, *, extra: dict[str, Any] | None = None) -> Any:
    """The property text of each row, from the columns of the batch and from `extra`, which maps names to columns.

    A map that was read from a topic can be sent as it is: names in `NOT_SENT` are left out, and those that a column of
    the batch sets. `OptionError` for a separator byte in a name or value.
    """
    present = batch.schema.names
    pieces: list[Any] = []
    if "properties" in present:
        set_otherwise = {name for name, column in OWN_COLUMNS.items() if column in present}
        pieces.append(_map_texts(batch.column("properties"), NOT_SENT | set_otherwise))
    for name, column in OWN_COLUMNS.items():
        if column in present:
            values = batch.column(column)
            pieces += _pair(name, _joined_keys(values) if pa.types.is_list(values.type) else values)
    for name, column in (extra or {}).items():
        pieces += _pair(name, column)
    pieces.append(f"{names.WAIT}\x01true\x02")
    pieces += _pair(names.UNIQ_KEY, ids)
    return _checked_lengths(pc.binary_join_element_wise(*_with_joined_constants(pieces), ""))


def copied_texts(maps: Any, ids: Any, extra: Mapping[str, str], dropped: Iterable[str]) -> Any:
    """The property text of each copy: the pairs of its map without the names in `dropped`, `extra`, and its id."""
    pieces = [_joined_pairs(maps, {*dropped, *extra, names.WAIT, names.UNIQ_KEY})]
    pieces += [f"{name}\x01{value}\x02" for name, value in extra.items()]
    pieces += [f"{names.WAIT}\x01true\x02{names.UNIQ_KEY}\x01", ids, "\x02"]
    return _checked_lengths(pc.binary_join_element_wise(*pieces, ""))


def _checked_lengths(texts: Any) -> Any:
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest > MAX_PROPERTIES_BYTES:
        raise OptionError(
            "the properties of a row", f"must have at most {MAX_PROPERTIES_BYTES} bytes, got {longest}"
        )
    return texts


def _joined_keys(lists: Any) -> Any:
    """The keys of each row, separated by blanks. A null among them is skipped."""
    keys = lists.flatten().cast(pa.string())
    is_key = pc.fill_null(pc.greater(pc.binary_length(keys), 0), False)
    rows = np.asarray(pc.list_parent_indices(lists).filter(is_key))
    edges = np.searchsorted(rows, np.arange(len(lists) + 1)).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(edges), keys.filter(is_key)), " ")


def _with_joined_constants(pieces: list[Any]) -> Iterator[Any]:
    """The pieces, constants beside each other as one: what a join costs is the number of its pieces."""
    for is_constant, run in itertools.groupby(pieces, lambda piece: isinstance(piece, str)):
        if is_constant:
            yield "".join(run)
        else:
            yield from run


def _pair(name: str, values: Any) -> list[Any]:
    """The pieces of `name 0x01 value 0x02`, which is empty if the value is null or empty."""
    _refuse_separators(name, values)
    if not values.null_count and pc.min(pc.binary_length(values)).as_py():
        return [f"{name}\x01", values, "\x02"]
    text = pc.binary_join_element_wise(f"{name}\x01", values, "\x02", "")
    has_value = pc.fill_null(pc.greater(pc.binary_length(values), 0), False)
    return [pc.if_else(has_value, text, "")]


def _map_texts(maps: Any, dropped: Iterable[str]) -> Any:
    """The pairs of each row's map, without the dropped names."""
    distinct = pc.unique(maps.keys)
    if pc.any(pc.equal(pc.binary_length(distinct), 0)).as_py():
        raise OptionError("column properties", ": a name must not be empty")
    _refuse_separators("properties", distinct)
    _refuse_separators("properties", maps.items)
    return _joined_pairs(maps, dropped)


def _joined_pairs(maps: Any, dropped: Iterable[str]) -> Any:
    """The pairs of each row's map as one text, without empty values, and without the dropped names."""
    keys, items = maps.keys, pc.fill_null(maps.items, "")
    are_wanted = pc.and_(
        pc.greater(pc.binary_length(items), 0),
        pc.invert(pc.is_in(keys, value_set=pa.array(sorted(dropped), pa.string()))),
    )
    pairs = pc.if_else(are_wanted, pc.binary_join_element_wise(keys, "\x01", items, "\x02", ""), "")
    lengths = np.diff(np.asarray(maps.offsets))
    if len(pairs) == len(lengths) and (lengths == 1).all():
        return pairs
    edges = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(edges), pairs)
    return pc.fill_null(pc.binary_join(lists, ""), "")


def _refuse_separators(what: str, texts: Any) -> None:
    for separator in ("\x01", "\x02"):
        if pc.any(pc.match_substring(texts, separator)).as_py():
            raise OptionError(
                what, f": a value must not have the byte {ord(separator)}, which separates properties"
            )


def bodies_of(batch: Any) -> Any:
    """The body column as binary. `OptionError` for a null."""
    body = batch.column("body")
    if body.null_count:
        raise OptionError("column body", "must not be null")
    return body.cast(pa.binary())


def elements(bodies: Any, texts: Any, flags: Any = None) -> Any:
    """The element of each row, contiguous in one buffer."""
    count = len(bodies)
    texts = texts.cast(pa.binary())
    heads = np.zeros(count, dtype=_HEAD)
    body_sizes = np.asarray(pc.binary_length(bodies))
    text_sizes = np.asarray(pc.binary_length(texts))
    heads["total"] = 22 + body_sizes + text_sizes
    heads["body"] = body_sizes
    if flags is not None:
        heads["flag"] = np.asarray(pc.fill_null(flags, 0))
    head = pa.Array.from_buffers(pa.binary(20), count, [None, pa.py_buffer(heads)]).cast(pa.binary())
    lengths = text_sizes.astype(">i2")
    width = pa.Array.from_buffers(pa.binary(2), count, [None, pa.py_buffer(lengths)]).cast(pa.binary())
    return pc.binary_join_element_wise(head, bodies, width, texts, b"")


def requests(encoded: Any, max_rows: int, max_bytes: int) -> Iterator[tuple[int, int, memoryview | None]]:
    """(first, stop, body) of each request for these elements, which are an array of its own, no slice.

    No body for one row of more than `max_bytes`: a batch of one is longer than the message alone, and may exceed the
    broker's limit.
    """
    sizes = np.asarray(pc.binary_length(encoded)).astype(np.int64)
    edges = np.concatenate(([0], np.cumsum(sizes))).tolist()
    data = memoryview(encoded.buffers()[2])
    for first, stop in batch_slices(sizes, max_rows, max_bytes):
        is_too_long = stop - first == 1 and sizes[first] > max_bytes
        yield first, stop, None if is_too_long else data[edges[first] : edges[stop]]
