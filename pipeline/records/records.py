"""Records to columns: whole arrays at a time, without a Python loop over messages except for rare forms.

`Records` holds a buffer and the positions of its records. `column(name)` computes one Arrow array on request, so unused
columns are not decoded. The fixed heads are gathered once into one array, from which the number columns are read. Texts
and bodies are slices of the buffer (`slices.py`). Records of both versions, with IPv4 and IPv6 hosts, may be mixed. The
bytes of commit log files and of pull replies are the same. The record is drawn in `pocketmq.protocol.message.record`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pocketmq.protocol.message.compression import CompressionError, decompress
from pocketmq.protocol.message.flags import BORN_HOST_IPV6, COMPRESSED, STORE_HOST_IPV6
from pocketmq.protocol.message.offset_id import encode_message_id, unpack_host
from pocketmq.protocol.message.properties import KEYS, TAGS, TRAN_MSG, UNIQ_KEY
from pocketmq.protocol.message.record import (
    IPV4_HOST_BYTES,
    IPV6_HOST_BYTES,
    MAGIC_V2,
    MAX_TOPIC_BYTES_V1,
    MIN_RECORD_BYTES,
)

from .columns import MESSAGE_COLUMNS, TIMESTAMP
from .slices import Ints, hexadecimal, repeated, slices, text_of
from .stored_properties import StoredProperties

Flags = npt.NDArray[np.bool_]

CRC_MASK: Final = 0x7FFFFFFF
"""The stored CRC has no sign bit: `pocketmq.protocol.message.record.body_crc`."""
HEAD: Final = np.dtype(
    [
        *(("storeSize", ">i4"), ("magic", ">i4"), ("bodyCRC", ">i4"), ("queueId", ">i4"), ("flag", ">i4")),
        *(("queueOffset", ">i8"), ("physicalOffset", ">i8"), ("sysFlag", ">i4"), ("bornTimestamp", ">i8")),
        *(("bornHost", ">u8"), ("storeTimestamp", ">i8"), ("storeHost", ">u8"), ("reconsumeTimes", ">i4")),
        *(("preparedTransactionOffset", ">i8"), ("bodyLength", ">i4")),
    ]
)
"""The head of a record with IPv4 hosts. With an IPv6 host, the fields after that host begin 12 bytes later.

numpy needs the layout as a dtype; a test compares it with `pocketmq.protocol.message.record`.
"""
_AT: Final = {name: int(field[1]) for name, field in (HEAD.fields or {}).items()}
assert HEAD.itemsize < MIN_RECORD_BYTES


class Records:
    """Records of one buffer. `starts` must rise; every record must lie completely in `data`.

    `data` is any object with a buffer. It is only read, and the arrays may share its memory. `numbers` and
    `topic_names` are what a scan has read of the records already (`sound_records.py`).
    """

    def __init__(
        self,
        data: Any,
        starts: Ints | Sequence[int],
        *,
        broker_name: str | None = None,
        numbers: Mapping[str, Ints] | None = None,
        topic_names: Any = None,
    ) -> None:
        self.bytes: npt.NDArray[np.uint8] = np.frombuffer(data, dtype=np.uint8)
        self.starts: Ints = np.asarray(starts, dtype=np.int64)
        self._broker_name = broker_name
        self._wants_decompression = True
        self._numbers = numbers or {}
        self._topic_names = topic_names

    def __len__(self) -> int:
        return len(self.starts)

    def columns(self, names: Sequence[str]) -> list[Any]:
        """One Arrow array for each name of `MESSAGE_COLUMNS`."""
        return [self.column(name) for name in names]

    def column(self, name: str) -> Any:
        """The Arrow array of one column."""
        return _COLUMNS[name](self)

    def keep_bodies_compressed(self) -> "Records":
        """Return bodies as stored; the CRC is computed over these bytes."""
        self._wants_decompression = False
        return self

    def only(self, mask: Flags) -> "Records":
        """The records for which the mask is true; these records themselves if it is true for all."""
        if mask.all():
            return self
        fewer = Records(
            self.bytes,
            self.starts[mask],
            broker_name=self._broker_name,
            numbers={name: numbers[mask] for name, numbers in self._numbers.items()},
            topic_names=self._topic_names,
        )
        fewer._wants_decompression = self._wants_decompression
        if not self._numbers or "_heads" in self.__dict__:
            fewer._heads = self._heads[mask]
        return fewer

    # -- numbers

    @cached_property
    def _heads(self) -> Any:
        """All heads in one array: the bytes of each record are gathered once, not once for each column."""
        return self._from_anywhere(f"V{HEAD.itemsize}")[self.starts].view(HEAD)

    def _from_anywhere(self, kind: Any) -> Any:
        """A view with an item at every byte; an item must not reach beyond the end."""
        kind_type = np.dtype(kind)
        count = max(len(self.bytes) - kind_type.itemsize + 1, 0)
        return np.ndarray(shape=(count,), dtype=kind_type, buffer=self.bytes, strides=(1,))

    def numbers(self, at: Ints, kind: str) -> Any:
        """Big-endian numbers (`>i4`, `>i8`, ...) at byte positions, in the machine's order."""
        return self._from_anywhere(kind)[at].astype(np.dtype(kind).newbyteorder("="))

    def head(self, name: str) -> Any:
        """One number of each head, in the machine's order."""
        kind = HEAD[name]
        if name in self._numbers:
            return self._numbers[name].astype(kind.newbyteorder("="), copy=False)
        if _AT[name] <= _AT["bornHost"] or not self._has_long_hosts:
            return self._heads[name].astype(kind.newbyteorder("="))
        return self.numbers(self._position(name), kind.str)

    @cached_property
    def sizes(self) -> Ints:
        """totalSize of each."""
        return self._long("storeSize")

    @cached_property
    def queue_offsets(self) -> Ints:
        return self._long("queueOffset")

    @property
    def store_times_ms(self) -> Ints:
        """storeTimestamp of each."""
        return self._long("storeTimestamp")

    def _long(self, name: str) -> Ints:
        longs: Ints = self.head(name).astype(np.int64, copy=False)
        return longs

    def _long_at(self, at: Ints, kind: str) -> Ints:
        return self.numbers(at, kind).astype(np.int64, copy=False)  # type: ignore[no-any-return]

    # -- positions

    @cached_property
    def _sys_flags(self) -> Ints:
        return self._long("sysFlag")

    @cached_property
    def _has_long_hosts(self) -> bool:
        return bool((self._sys_flags & (BORN_HOST_IPV6 | STORE_HOST_IPV6)).any())

    @cached_property
    def _born_widths(self) -> Ints:
        return np.where(self._sys_flags & BORN_HOST_IPV6, IPV6_HOST_BYTES, IPV4_HOST_BYTES)

    @cached_property
    def _store_widths(self) -> Ints:
        return np.where(self._sys_flags & STORE_HOST_IPV6, IPV6_HOST_BYTES, IPV4_HOST_BYTES)

    def _position(self, name: str) -> Ints:
        """The position of a field of the head in each record; hosts before it may be IPv6."""
        position = self.starts + _AT[name]
        if self._has_long_hosts:
            if _AT[name] > _AT["bornHost"]:
                position += self._born_widths - IPV4_HOST_BYTES
            if _AT[name] > _AT["storeHost"]:
                position += self._store_widths - IPV4_HOST_BYTES
        return position

    @cached_property
    def _body_at(self) -> Ints:
        return self._position("bodyLength") + HEAD["bodyLength"].itemsize

    @cached_property
    def _is_v2(self) -> Flags:
        found: Flags = self._heads["magic"] == MAGIC_V2
        return found

    @cached_property
    def body_bounds(self) -> tuple[Ints, Ints]:
        if self._numbers:
            return self._numbers["bodyAt"], self._numbers["bodyEnd"]
        return self._body_at, self._body_at + self._long("bodyLength")

    @cached_property
    def topic_bounds(self) -> tuple[Ints, Ints]:
        if self._numbers:
            return self._numbers["topicAt"], self._numbers["topicEnd"]
        body_end = self.body_bounds[1]
        lengths = self.bytes[body_end].astype(np.int64)
        begin = body_end + 1
        if self._has_v2:
            lengths[self._is_v2] = self.numbers(body_end[self._is_v2], ">i2")
            begin[self._is_v2] += 1
        return begin, begin + lengths

    @cached_property
    def _has_v2(self) -> bool:
        return bool(self._is_v2.any())

    @cached_property
    def properties_bounds(self) -> tuple[Ints, Ints]:
        topic_end = self.topic_bounds[1]
        begin = topic_end + 2
        if self._numbers:
            return begin, self.starts + self.sizes
        return begin, begin + self._long_at(topic_end, ">i2")

    def lengths_agree(self) -> Flags:
        """Which records' inner lengths add up to their size. Texts and bodies of the others must not be read."""
        ends = self.starts + self.sizes
        is_long_enough = self._body_at + 3 <= ends  # for the hosts that its flags name
        if not is_long_enough.all():
            is_long_enough[is_long_enough] = self.only(is_long_enough).lengths_agree()
            return is_long_enough
        if self._all_agree(ends):
            return np.ones(len(self), dtype=np.bool_)
        return self._lengths_agree(ends)

    def _all_agree(self, ends: Ints) -> bool:
        """Whether all do, as in a sound log. Their bounds are computed once, and no byte after a record is touched."""
        begin, body_end = self.body_bounds
        if not ((body_end >= begin) & (body_end + 4 <= ends)).all():
            return False
        topic_begin, topic_end = self.topic_bounds
        if not ((topic_end >= topic_begin) & (topic_end + 2 <= ends)).all():
            return False
        if (self.properties_bounds[1] == ends).all():
            return True
        del self.__dict__["properties_bounds"]
        return False

    def _lengths_agree(self, ends: Ints) -> Flags:
        """The same for records that are long enough for their hosts."""
        begin, body_end = self.body_bounds
        width = np.where(self._is_v2, 2, 1)
        fine: Flags = (body_end >= begin) & (body_end + width + 2 <= ends)
        body_end = np.where(fine, body_end, begin)
        lengths = self.bytes[body_end].astype(np.int64)
        if self._is_v2.any():
            lengths = np.where(self._is_v2, self._long_at(body_end, ">i2"), lengths)
        topic_end = body_end + width + lengths
        fine &= (lengths >= 0) & (topic_end + 2 <= ends)
        topic_end = np.where(fine, topic_end, begin)
        fine &= topic_end + 2 + self._long_at(topic_end, ">i2") == ends
        return fine

    # -- texts

    def bytes_between(self, bounds: tuple[Ints, Ints]) -> Any:
        """The bytes between the bounds, which must rise, as a binary array."""
        return slices(self.bytes, *bounds, pa.binary())

    @cached_property
    def properties(self) -> StoredProperties:
        return StoredProperties(self.bytes, *self.properties_bounds)

    def bodies(self) -> Any:
        """Bodies, decompressed unless `keep_bodies_compressed` was called.

        A body that cannot be decompressed stays as it is.
        """
        bodies = self.bytes_between(self.body_bounds)
        is_compressed = (self._sys_flags & COMPRESSED) != 0
        if not self._wants_decompression or not is_compressed.any():
            return bodies
        mask = pa.array(is_compressed)
        flags = self._sys_flags[is_compressed].tolist()
        bytes_of = map(_decompressed, bodies.filter(mask).to_pylist(), flags)
        return pc.replace_with_mask(bodies, mask, pa.array(list(bytes_of), type=pa.binary()))

    def bad_crcs(self) -> Flags:
        """Which bodies' CRC differs from the stored one. The loop over the bodies runs in C."""
        begins, ends = self.body_bounds
        bodies = map(memoryview(self.bytes.data).__getitem__, map(slice, begins.tolist(), ends.tolist()))
        computed = np.fromiter(map(crc32, bodies), dtype=np.int64, count=len(self))
        bad: Flags = (computed & CRC_MASK) != self.head("bodyCRC")
        return bad & (ends > begins)

    def hosts(self, name: str) -> Any:
        """`address:port` texts of the packed hosts `bornHost` or `storeHost`; only the distinct ones are formatted."""
        hosts = pa.array(self.head(name)).dictionary_encode()
        distinct = [
            _host_text(host.to_bytes(IPV4_HOST_BYTES, "big")) for host in hosts.dictionary.to_pylist()
        ]
        texts = pa.array(distinct, type=pa.string()).take(hosts.indices)
        is_long = self._has_long(name)
        if not is_long.any():
            return texts
        packed = self._packed_long_hosts(name, is_long)
        long_texts = {host: _host_text(host) for host in set(packed)}
        replacements = pa.array([long_texts[host] for host in packed], type=pa.string())
        return pc.replace_with_mask(texts, pa.array(is_long), replacements)

    def _has_long(self, name: str) -> Flags:
        """Which records have an IPv6 host in this field."""
        flag = BORN_HOST_IPV6 if name == "bornHost" else STORE_HOST_IPV6
        found: Flags = (self._sys_flags & flag) != 0
        return found

    def _packed_long_hosts(self, name: str, is_long: Flags) -> list[bytes]:
        positions = self._position(name)[is_long].tolist()
        return [self.bytes[position : position + IPV6_HOST_BYTES].tobytes() for position in positions]

    @cached_property
    def offset_message_ids(self) -> Any:
        """The broker's message ids: store host and physical offset as hexadecimal text."""
        count = len(self)
        raw = np.empty((count, 2), dtype=">u8")
        raw[:, 0] = self.head("storeHost")
        raw[:, 1] = self.head("physicalOffset")
        ids = hexadecimal(raw.view(np.uint8))
        is_long = self._has_long("storeHost")
        if not is_long.any():
            return ids
        offsets = self.head("physicalOffset")[is_long].tolist()
        long_ids = list(map(encode_message_id, self._packed_long_hosts("storeHost", is_long), offsets))
        return pc.replace_with_mask(ids, pa.array(is_long), pa.array(long_ids, type=pa.string()))

    def message_ids(self) -> Any:
        unique = self.properties.values(UNIQ_KEY)
        return unique if not unique.null_count else pc.coalesce(unique, self.offset_message_ids)

    def transaction_ids(self) -> Any:
        prepared = self.properties.values(TRAN_MSG)
        if prepared.null_count == len(prepared):
            return prepared
        is_prepared = pc.equal(prepared, pa.scalar("true", pa.string()))
        return pc.if_else(is_prepared, self.properties.values(UNIQ_KEY), pa.scalar(None, pa.string()))

    def has_tag(self, tags: Collection[str]) -> Flags:
        """Which records have one of the tags."""
        found = pc.is_in(self.properties.values(TAGS), value_set=pa.array(sorted(tags), type=pa.string()))
        return np.asarray(found, dtype=np.bool_)

    @cached_property
    def only_topic(self) -> str | None:
        """The topic of all records, as of a reply to a pull; None if they have several or it is not seen at once."""
        if self._topic_names is not None:
            return self._topic_names[0].as_py() if len(self._topic_names) == 1 else None
        begin, end = self.topic_bounds
        if not len(begin):
            return None
        length = int(end[0] - begin[0])
        if not 0 < length <= MAX_TOPIC_BYTES_V1 or not (end - begin == length).all():
            return None
        raw = self._from_anywhere(f"V{length}")[begin].view(np.uint8).reshape(len(begin), length)
        return raw[0].tobytes().decode("utf-8", "replace") if (raw == raw[0]).all() else None

    def topics(self) -> Any:
        if self.only_topic is not None:
            return repeated(self.only_topic, len(self))
        if self._topic_names is not None:
            return self._topic_names.take(pa.array(self._numbers["topic"]))
        return text_of(self.bytes_between(self.topic_bounds))

    def of_topics(self, topics: Collection[str]) -> Flags:
        """Which records have one of the topics."""
        values, numbers = self.codes("topic")
        is_wanted = np.asarray(pc.is_in(values, value_set=pa.array(sorted(topics))), dtype=np.bool_)
        found: Flags = is_wanted[np.zeros(len(self), np.int64) if numbers is None else numbers]
        return found

    def codes(self, name: str) -> tuple[Any, Ints | None]:
        """(the distinct values of a column, the number of the value of each record; None if there is only one value).

        The values are an Arrow array, in which null may be one.
        """
        if name == "topic" and self.only_topic is not None:
            return pa.array([self.only_topic]), None
        if name == "topic" and self._topic_names is not None:
            return self._topic_names, self._numbers["topic"]
        encoded = self.column(name).dictionary_encode(null_encoding="encode")
        if len(encoded.dictionary) == 1:
            return encoded.dictionary, None
        return encoded.dictionary, np.asarray(encoded.indices).astype(np.int64)

    def broker_names(self) -> Any:
        return repeated(self._broker_name, len(self))

    def times(self, name: str) -> Any:
        return pa.array(self.head(name) * 1000).cast(TIMESTAMP)


def _decompressed(body: bytes, sys_flag: int) -> bytes:
    """The body as it is if it cannot be decompressed."""
    try:
        return bytes(decompress(body, sys_flag))
    except CompressionError:
        return body


def _host_text(packed: bytes) -> str:
    address, port = unpack_host(packed)
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _number(name: str) -> Callable[[Records], Any]:
    """A number of the head."""
    return lambda records: pa.array(records.head(name))


_COLUMNS: Final[dict[str, Callable[[Records], Any]]] = {
    "topic": Records.topics,
    "brokerName": Records.broker_names,
    "queueId": _number("queueId"),
    "queueOffset": _number("queueOffset"),
    "keys": lambda records: records.properties.values(KEYS),
    "tags": lambda records: records.properties.values(TAGS),
    "body": Records.bodies,
    "properties": lambda records: records.properties.maps(),
    "flag": _number("flag"),
    "sysFlag": _number("sysFlag"),
    "bornTimestamp": lambda records: records.times("bornTimestamp"),
    "storeTimestamp": lambda records: records.times("storeTimestamp"),
    "bornHost": lambda records: records.hosts("bornHost"),
    "storeHost": lambda records: records.hosts("storeHost"),
    "reconsumeTimes": _number("reconsumeTimes"),
    "msgId": Records.message_ids,
    "offsetMsgId": lambda records: records.offset_message_ids,
    "bodyCRC": _number("bodyCRC"),
    "physicalOffset": _number("physicalOffset"),
    "storeSize": _number("storeSize"),
    "preparedTransactionOffset": _number("preparedTransactionOffset"),
    "transactionId": Records.transaction_ids,
}
assert _COLUMNS.keys() == MESSAGE_COLUMNS.keys()
HEAD_COLUMNS: Final = frozenset(_COLUMNS) - {
    *("topic", "keys", "tags", "body", "properties", "msgId", "transactionId"),
}
"""The columns for which no text and no body of a record is read."""
