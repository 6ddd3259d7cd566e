"""Records to columns: whole arrays at a time, never a Python loop over messages (but for rare forms).

`Records` holds a buffer and where its records begin; `column(name)` gives one Arrow array, computed when asked, so what
nobody wants is not decoded. Header numbers are gathered through views of stride 1; texts and bodies are cut by giving
Arrow the pairs (begin, end) as the offsets of one long binary array, of which it takes every other element. Records
of both versions, with IPv4 and IPv6 hosts, may stand side by side. The bytes of commit log files and of pull replies
are the same. No Spark, no files, no sockets. Properties: `properties_codec.py`. The record itself is drawn in
`pocketmq.protocol.record`.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pocketmq.protocol.compression import CompressionError, decompress
from pocketmq.protocol.flags import BORN_HOST_IPV6, COMPRESSED, STORE_HOST_IPV6
from pocketmq.protocol.message_id import encode_message_id, unpack_host
from pocketmq.protocol.properties import KEYS, TAGS, TRAN_MSG, UNIQ_KEY
from pocketmq.protocol.record import MAGIC_V2, body_crc

from .columns import MESSAGE_COLUMNS, TIMESTAMP
from .properties_codec import Properties

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_HEX: Final = np.frombuffer("".join(f"{byte:02X}" for byte in range(256)).encode(), dtype=np.uint16)
"""Two upper-case digits of each byte."""
_READS_BYTES: Final = 8
LONGEST_TOPIC: Final = 127
"""Of records of the first version."""


class Records:
    """Records of one buffer. `starts` rise; every record must lie whole in `data`.

    `data` is anything with a buffer; it is read, never written, and the arrays made of it may share its memory.
    """

    def __init__(self, data: Any, starts: Ints | Sequence[int], *, broker_name: str | None = None) -> None:
        self.bytes: npt.NDArray[np.uint8] = np.frombuffer(data, dtype=np.uint8)
        self.starts: Ints = np.asarray(starts, dtype=np.int64)
        self._broker_name = broker_name
        self._wants_decompression = True

    def __len__(self) -> int:
        return len(self.starts)

    def columns(self, names: Sequence[str]) -> list[Any]:
        """One Arrow array for each name of `MESSAGE_COLUMNS`."""
        return [self.column(name) for name in names]

    def column(self, name: str) -> Any:
        """The Arrow array of one column."""
        return _COLUMNS[name](self)

    def keep_bodies_compressed(self) -> "Records":
        """Bodies as stored, which is what the CRC is of."""
        self._wants_decompression = False
        return self

    def only(self, mask: Flags) -> "Records":
        """The records of the mask."""
        fewer = Records(self.bytes, self.starts[mask], broker_name=self._broker_name)
        fewer._wants_decompression = self._wants_decompression
        return fewer

    # -- numbers

    def numbers(self, at: Ints, kind: str) -> Any:
        """Big-endian numbers (`>i4`, `>i8`, ...) at byte positions, in the machine's order."""
        kind_type = np.dtype(kind)
        if len(self.bytes) < kind_type.itemsize:
            return np.zeros(0, dtype=kind_type.newbyteorder("="))
        view: Any = np.ndarray(
            shape=(len(self.bytes) - kind_type.itemsize + 1,),
            dtype=kind_type,
            buffer=self.bytes,
            strides=(1,),
        )
        return view[at].astype(kind_type.newbyteorder("="))

    @cached_property
    def sizes(self) -> Ints:
        """totalSize of each."""
        return self._long_of(self.starts, ">i4")

    @cached_property
    def queue_offsets(self) -> Ints:
        return self._long_of(self.starts + 20, ">i8")

    @property
    def store_times_ms(self) -> Ints:
        """storeTimestamp of each."""
        return self._long_of(self._store_time_at, ">i8")

    @cached_property
    def _sys_flags(self) -> Ints:
        return self._long_of(self.starts + 36, ">i4")

    def _long_of(self, at: Ints, kind: str) -> Ints:
        longs: Ints = self.numbers(at, kind).astype(np.int64, copy=False)
        return longs

    # -- where things stand

    @cached_property
    def _born_widths(self) -> Ints:
        return np.where(self._sys_flags & BORN_HOST_IPV6, 20, 8)

    @cached_property
    def _store_widths(self) -> Ints:
        return np.where(self._sys_flags & STORE_HOST_IPV6, 20, 8)

    @cached_property
    def _store_time_at(self) -> Ints:
        return self.starts + 48 + self._born_widths

    @cached_property
    def _after_hosts(self) -> Ints:
        return self._store_time_at + 8 + self._store_widths

    @cached_property
    def body_bounds(self) -> tuple[Ints, Ints]:
        begin = self._after_hosts + 16
        return begin, begin + self._long_of(self._after_hosts + 12, ">i4")

    @cached_property
    def topic_bounds(self) -> tuple[Ints, Ints]:
        body_end = self.body_bounds[1]
        lengths = self.bytes[body_end].astype(np.int64)
        begin = body_end + 1
        is_v2 = self.numbers(self.starts + 4, ">i4") == MAGIC_V2
        if is_v2.any():
            lengths[is_v2] = self.numbers(body_end[is_v2], ">i2")
            begin[is_v2] += 1
        return begin, begin + lengths

    @cached_property
    def properties_bounds(self) -> tuple[Ints, Ints]:
        topic_end = self.topic_bounds[1]
        begin = topic_end + 2
        return begin, begin + self._long_of(topic_end, ">i2")

    def lengths_agree(self) -> Flags:
        """Which records' inner lengths add up to their size. The others must not be asked for texts or bodies."""
        ends = self.starts + self.sizes
        good = self._after_hosts + 16 + 3 <= ends
        good[good] = self._lengths_agree_of(good, ends)
        return good

    def _lengths_agree_of(self, good: Flags, ends: Ints) -> Flags:
        some, ends = self.only(good), ends[good]
        begin = some._after_hosts + 16
        body_end = begin + some._long_of(some._after_hosts + 12, ">i4")
        is_v2 = some.numbers(some.starts + 4, ">i4") == MAGIC_V2
        width = np.where(is_v2, 2, 1)
        fine: Flags = (body_end >= begin) & (body_end + width + 2 <= ends)
        body_end = np.where(fine, body_end, begin)
        lengths = some.bytes[body_end].astype(np.int64)
        lengths = np.where(is_v2, some._long_of(body_end, ">i2"), lengths)
        topic_end = body_end + width + lengths
        fine &= (lengths >= 0) & (topic_end + 2 <= ends)
        topic_end = np.where(fine, topic_end, begin)
        fine &= topic_end + 2 + some._long_of(topic_end, ">i2") == ends
        return fine

    # -- texts

    def cut(self, bounds: tuple[Ints, Ints]) -> Any:
        """The bytes between the bounds, which must rise, as a binary array."""
        begin, end = bounds
        count = len(begin)
        if not count:
            return pa.array([], type=pa.binary())
        first = int(begin[0])
        edges = np.empty(2 * count, dtype=np.int64)
        edges[0::2] = begin
        edges[1::2] = end
        edges -= first
        if edges[-1] >= 1 << 31:
            raise OverflowError(f"{edges[-1]} bytes of records in one batch; at most 2 GiB")
        buffers = [None, pa.py_buffer(edges.astype(np.int32)), pa.py_buffer(self.bytes[first : int(end[-1])])]
        whole = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
        return whole.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int64)))

    @cached_property
    def properties(self) -> Properties:
        return Properties(text_of(self.cut(self.properties_bounds)))

    def bodies(self) -> Any:
        """Bodies, decompressed unless `keep_bodies_compressed` was called; one that cannot be is left as it is."""
        bodies = self.cut(self.body_bounds)
        compressed = np.flatnonzero(self._sys_flags & COMPRESSED)
        if not self._wants_decompression or not len(compressed):
            return bodies
        changed = bodies.to_pylist()
        for row in compressed.tolist():
            try:
                changed[row] = bytes(decompress(changed[row], int(self._sys_flags[row])))
            except CompressionError:
                continue
        return pa.array(changed, type=pa.binary())

    def bad_crcs(self) -> Flags:
        """Which bodies' CRC is not the stored one. A Python loop: 0.8 M records a second."""
        stored = self.numbers(self.starts + 8, ">i4")
        begins, ends = (edge.tolist() for edge in self.body_bounds)
        view = memoryview(self.bytes.data)
        computed = [body_crc(view[begin:end]) for begin, end in zip(begins, ends, strict=True)]
        bad: Flags = np.array(computed, dtype=np.int64) != stored
        return bad & (self.body_bounds[1] > self.body_bounds[0])

    def hosts(self, at: Ints, widths: Ints) -> Any:
        """`address:port` texts of packed hosts; only the distinct ones are formatted."""
        wide = widths == 20
        if wide.any():
            packed = [
                bytes(self.bytes[place : place + width])
                for place, width in zip(at.tolist(), widths.tolist(), strict=True)
            ]
            texts = {one: _host_text(one) for one in set(packed)}
            return pa.array([texts[one] for one in packed], type=pa.string())
        distinct, where = np.unique(self.numbers(at, ">u8"), return_inverse=True)
        known = pa.array([_host_text(int(one).to_bytes(8, "big")) for one in distinct], type=pa.string())
        return known.take(pa.array(where.reshape(-1)))

    @cached_property
    def offset_message_ids(self) -> Any:
        """The broker's ids: store host and physical offset as hexadecimal text."""
        places = self._store_time_at + 8
        if (self._store_widths == 20).any():
            ids = [
                encode_message_id(bytes(self.bytes[place : place + width]), offset)
                for place, width, offset in zip(
                    places.tolist(),
                    self._store_widths.tolist(),
                    self._long_of(self.starts + 28, ">i8").tolist(),
                    strict=True,
                )
            ]
            return pa.array(ids, type=pa.string())
        count = len(self)
        raw = np.empty((count, 16), dtype=np.uint8)
        raw[:, :8] = self.bytes[places[:, None] + np.arange(_READS_BYTES)]
        raw[:, 8:] = self.bytes[(self.starts + 28)[:, None] + np.arange(_READS_BYTES)]
        digits = _HEX[raw]
        edges = np.arange(count + 1, dtype=np.int32) * 32
        return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(edges), pa.py_buffer(digits)])

    def message_ids(self) -> Any:
        unique = self.properties.values(UNIQ_KEY)
        return unique if not unique.null_count else pc.coalesce(unique, self.offset_message_ids)

    def transaction_ids(self) -> Any:
        prepared = self.properties.values(TRAN_MSG)
        if prepared.null_count == len(prepared):
            return prepared
        is_prepared = pc.equal(prepared, "true")
        return pc.if_else(is_prepared, self.properties.values(UNIQ_KEY), pa.scalar(None, pa.string()))

    def has_tag(self, tags: Collection[str]) -> Flags:
        """Which records carry one of the tags."""
        found = pc.is_in(self.properties.values(TAGS), value_set=pa.array(sorted(tags), type=pa.string()))
        return np.asarray(found, dtype=np.bool_)

    def topics(self) -> Any:
        begin, end = self.topic_bounds
        if len(begin) and (end - begin == end[0] - begin[0]).all() and end[0] - begin[0] <= LONGEST_TOPIC:
            raw = self.bytes[begin[:, None] + np.arange(end[0] - begin[0])]
            if (raw == raw[0]).all():  # one topic, as in every reply to a pull
                return pa.repeat(text_of(pa.array([raw[0].tobytes()]))[0], len(self))
        return text_of(self.cut((begin, end)))

    def broker_names(self) -> Any:
        return pa.repeat(pa.scalar(self._broker_name, pa.string()), len(self))

    def times(self, at: Ints) -> Any:
        return pa.array(self.numbers(at, ">i8") * 1000).cast(TIMESTAMP)


def text_of(binary: Any) -> Any:
    """UTF-8 bytes as text; undecodable bytes become U+FFFD, as in Java."""
    try:
        return binary.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if one is None else one.decode("utf-8", "replace") for one in binary.to_pylist()]
        return pa.array(texts, type=pa.string())


def _host_text(packed: bytes) -> str:
    address, port = unpack_host(packed)
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _number(distance: int, kind: str) -> Callable[[Records], Any]:
    """A number of the fixed part of the header, `distance` bytes from the start."""
    return lambda records: pa.array(records.numbers(records.starts + distance, kind))


_COLUMNS: Final[dict[str, Callable[[Records], Any]]] = {
    "topic": Records.topics,
    "brokerName": Records.broker_names,
    "queueId": _number(12, ">i4"),
    "queueOffset": _number(20, ">i8"),
    "keys": lambda records: records.properties.values(KEYS),
    "tags": lambda records: records.properties.values(TAGS),
    "body": Records.bodies,
    "properties": lambda records: records.properties.maps(),
    "flag": _number(16, ">i4"),
    "sysFlag": _number(36, ">i4"),
    "bornTimestamp": lambda records: records.times(records.starts + 40),
    "storeTimestamp": lambda records: records.times(records._store_time_at),
    "bornHost": lambda records: records.hosts(records.starts + 48, records._born_widths),
    "storeHost": lambda records: records.hosts(records._store_time_at + 8, records._store_widths),
    "reconsumeTimes": lambda records: pa.array(records.numbers(records._after_hosts, ">i4")),
    "msgId": Records.message_ids,
    "offsetMsgId": lambda records: records.offset_message_ids,
    "bodyCRC": _number(8, ">i4"),
    "physicalOffset": _number(28, ">i8"),
    "storeSize": _number(0, ">i4"),
    "preparedTransactionOffset": lambda records: pa.array(records.numbers(records._after_hosts + 4, ">i8")),
    "transactionId": Records.transaction_ids,
}
assert _COLUMNS.keys() == MESSAGE_COLUMNS.keys()
