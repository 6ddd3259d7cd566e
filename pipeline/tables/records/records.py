"""Records to columns: whole arrays at a time, without a Python loop over messages except for rare forms.

`Records` holds a buffer and what a scan has read of its records (`scans.py`): the numbers that nearly every
read asks for, and where body, topic and properties are. `column(name)` computes one Arrow array on request, so unused
columns are not decoded. The other numbers are read from the fixed heads, which are gathered once into one array. Texts
and bodies are slices of the buffer (`slices.py`). Records of both versions, with IPv4 and IPv6 hosts, may be mixed. The
bytes of commit log files and of pull replies are the same. The record is drawn in `pocketmq.protocol.message.record`.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pocketmq.protocol.message.compression import CompressionError, decompress
from pocketmq.protocol.message.flags import BORN_HOST_IPV6, COMPRESSED, STORE_HOST_IPV6
from pocketmq.protocol.message.offset_id import encode_message_id, unpack_host
from pocketmq.protocol.message.properties import KEYS, TAGS, TRAN_MSG, UNIQ_KEY
from pocketmq.protocol.message.record import IPV4_HOST_BYTES, IPV6_HOST_BYTES, MIN_RECORD_BYTES

from .columns import MESSAGE_COLUMNS, TIMESTAMP
from .properties import Properties
from .scans import ANYWHERE, AT, COLUMNS, HEAD, Flags, bad_crcs, numbers_at, read_records_at, scan_records
from .slices import Ints, hexadecimal, repeated, slices

_NONE: Final[Ints] = np.empty(0, dtype=np.int64)


def scan(
    data: Any,
    at: int,
    end: int,
    base: int = ANYWHERE,
    *,
    most: int,
    check_crc: bool = False,
    broker_name: str | None = None,
) -> "Records":
    """At most `most` records that lie back to back from byte `at` on and begin before `end`.

    Ends before the first that is not whole, or not where it says (`base` is the log position of byte 0), or whose body
    has not its CRC if that is asked.
    """
    most = min(most, (min(end, len(data)) - at) // MIN_RECORD_BYTES + 1)
    if most <= 0 or not len(data):
        return records_at(data, _NONE, _NONE, broker_name=broker_name)
    room = np.empty((most, len(COLUMNS)), dtype=np.int64)
    count, topics = scan_records(data, at, end, base, check_crc, room)
    return Records(data, room[:count], topics, broker_name=broker_name)


def records_at(data: Any, starts: Ints, sizes: Ints, *, broker_name: str | None = None) -> "Records":
    """The records at these places, which must rise. One that is not whole has the size 0: only its place is right.

    `sizes` are what is expected.
    """
    room, topics = np.zeros((len(starts), len(COLUMNS)), dtype=np.int64), list[bytes]()
    if len(starts) and len(data):
        starts, sizes = (np.ascontiguousarray(numbers, dtype=np.int64) for numbers in (starts, sizes))
        _, topics = read_records_at(data, starts, sizes, room)
    return Records(data, room, topics, broker_name=broker_name)


class Records:
    """Records of one buffer, each whole and in the order of their places.

    `data` is any object with a buffer. It is only read, and the arrays may share its memory. `numbers` has a row of
    `COLUMNS` of `scans.py` for each, `topics` are the distinct topics.
    """

    def __init__(
        self, data: Any, numbers: Ints, topics: Sequence[bytes], *, broker_name: str | None = None
    ) -> None:
        self.bytes: npt.NDArray[np.uint8] = np.frombuffer(data, dtype=np.uint8)
        self._broker_name = broker_name
        self._wants_decompression = True
        self._numbers = numbers
        self._topics = topics

    def __len__(self) -> int:
        return len(self._numbers)

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
        fewer = Records(self.bytes, self._numbers[mask], self._topics, broker_name=self._broker_name)
        fewer._wants_decompression = self._wants_decompression
        return fewer

    # -- numbers

    def _scanned(self, name: str) -> Ints:
        return np.ascontiguousarray(self._numbers[:, COLUMNS.index(name)])

    @cached_property
    def starts(self) -> Ints:
        return self._scanned("start")

    @cached_property
    def sizes(self) -> Ints:
        """totalSize of each."""
        return self._scanned("storeSize")

    @cached_property
    def queue_offsets(self) -> Ints:
        return self._scanned("queueOffset")

    @property
    def store_times_ms(self) -> Ints:
        """storeTimestamp of each."""
        return self._scanned("storeTimestamp")

    @cached_property
    def body_bounds(self) -> tuple[Ints, Ints]:
        return self._scanned("bodyBegin"), self._scanned("bodyEnd")

    @cached_property
    def _heads(self) -> Any:
        """All heads in one array: the bytes of each record are gathered once, not once for each column."""
        return numbers_at(self.bytes, self.starts, f"V{HEAD.itemsize}").view(HEAD)

    def head(self, name: str) -> Any:
        """One number of each head, in the machine's order."""
        kind = HEAD[name]
        if name in COLUMNS:
            return self._scanned(name).astype(kind.newbyteorder("="), copy=False)
        if AT[name] <= AT["bornHost"] or not self._has_long_hosts:
            return self._heads[name].astype(kind.newbyteorder("="))
        return numbers_at(self.bytes, self._position(name), kind.str)

    # -- positions

    @cached_property
    def _sys_flags(self) -> Ints:
        return self._scanned("sysFlag")

    @cached_property
    def _has_long_hosts(self) -> bool:
        return bool((self._sys_flags & (BORN_HOST_IPV6 | STORE_HOST_IPV6)).any())

    def _position(self, name: str) -> Ints:
        """The position of a field of the head in each record; hosts before it may be IPv6."""
        position = self.starts + AT[name]
        for host in ("bornHost", "storeHost"):
            if self._has_long_hosts and AT[name] > AT[host]:
                position += self._has_long(host) * (IPV6_HOST_BYTES - IPV4_HOST_BYTES)
        return position

    # -- texts

    @cached_property
    def properties(self) -> Properties:
        return Properties(self.bytes, self._scanned("topicEnd") + 2, self.starts + self.sizes)

    def bodies(self) -> Any:
        """Bodies, decompressed unless `keep_bodies_compressed` was called.

        A body that cannot be decompressed stays as it is.
        """
        bodies = slices(self.bytes, *self.body_bounds, pa.binary())
        is_compressed = (self._sys_flags & COMPRESSED) != 0
        if not self._wants_decompression or not is_compressed.any():
            return bodies
        mask = pa.array(is_compressed)
        flags = self._sys_flags[is_compressed].tolist()
        bytes_of = map(_decompressed, bodies.filter(mask).to_pylist(), flags)
        return pc.replace_with_mask(bodies, mask, pa.array(list(bytes_of), type=pa.binary()))

    def bad_crcs(self) -> Flags:
        """Which bodies' CRC differs from the stored one."""
        return bad_crcs(self.bytes, self._numbers)

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
    def _topic_names(self) -> Any:
        return pa.array([topic.decode("utf-8", "replace") for topic in self._topics], type=pa.string())

    def topics(self) -> Any:
        if len(self._topics) == 1:
            return repeated(self._topic_names[0].as_py(), len(self))
        return self._topic_names.take(pa.array(self._scanned("topic")))

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
        if name == "topic":
            return self._topic_names, self._scanned("topic") if len(self._topics) > 1 else None
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
