"""Records of every form: both versions, IPv4 and IPv6, with and without bodies and properties."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st
from pocketmq.protocol.message.offset_id import encode_message_id, unpack_host
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import MAGIC_V1, MAGIC_V2, Record, encode_record

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGS = st.integers(0, (1 << 62) - 1)
INTS = st.integers(-(1 << 31), (1 << 31) - 1)
TIMES = st.integers(0, 4_000_000_000_000)
HOSTS = st.one_of(st.binary(min_size=8, max_size=8), st.binary(min_size=20, max_size=20))
WORDS = st.text(st.characters(exclude_characters="\x00\x01\x02", exclude_categories=("Cs",)), max_size=12)
NAMES = st.one_of(st.sampled_from(["KEYS", "TAGS", "UNIQ_KEY", "TRAN_MSG", "a"]), WORDS)
PROPERTY_TEXTS = st.one_of(
    st.builds(
        lambda pairs, ends: ("".join(f"{name}\x01{value}\x02" for name, value in pairs))[
            : None if ends else -1
        ],
        st.lists(st.tuples(NAMES, st.one_of(WORDS, st.just("true"))), max_size=6),
        st.booleans(),
    ),
    st.text(st.sampled_from("ab\x01\x02é"), max_size=12),
).map(lambda text: text.encode())
RECORDS = st.builds(
    Record,
    topic=st.one_of(st.just("Orders"), WORDS),
    queue_id=st.integers(0, 1000),
    queue_offset=LONGS,
    position=LONGS,
    body=st.binary(max_size=40),
    properties=st.one_of(PROPERTY_TEXTS, st.binary(max_size=10)),
    flag=INTS,
    sys_flag=st.sampled_from([0, 2, 4, 8]),
    born_timestamp=TIMES,
    born_host=HOSTS,
    store_timestamp=TIMES,
    store_host=HOSTS,
    reconsume_times=st.integers(0, 20),
    prepared_transaction_offset=LONGS,
    magic=st.sampled_from([MAGIC_V1, MAGIC_V2]),
)


def stored(
    count: int, *, base: int = 0, body_bytes: int = 20, topic: str = "Orders", queues: int = 2
) -> bytes:
    """`count` records as in a log file from position `base` on, each with its own position."""
    pieces, position = [], base
    for number in range(count):
        record = Record(
            topic=topic,
            queue_id=number % queues,
            queue_offset=number // queues,
            position=position,
            body=f"{number:06}".encode().ljust(body_bytes, b"."),
            properties=f"KEYS\x01k{number}\x02TAGS\x01{'AB'[number % 2]}\x02UNIQ_KEY\x01{number:032X}\x02".encode(),
            store_timestamp=1_700_000_000_000 + number,
        )
        raw = encode_record(record)
        pieces.append(raw)
        position += len(raw)
    return b"".join(pieces)


def row_of(record: Record) -> dict[str, object]:
    """The row of a record, decoded by itself; `brokerName` is broker-a."""
    properties = decode_properties(record.properties)

    def host(packed: bytes) -> str:
        address, port = unpack_host(packed)
        return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

    def moment(time_ms: int) -> datetime:
        return EPOCH + timedelta(milliseconds=time_ms)

    offset_id = encode_message_id(record.store_host, record.position)
    unique = properties.get("UNIQ_KEY")
    return {
        "topic": record.topic,
        "brokerName": "broker-a",
        "queueId": record.queue_id,
        "queueOffset": record.queue_offset,
        "keys": properties.get("KEYS"),
        "tags": properties.get("TAGS"),
        "body": bytes(record.body),
        "properties": properties,
        "flag": record.flag,
        "sysFlag": record.sys_flag,
        "bornTimestamp": moment(record.born_timestamp),
        "storeTimestamp": moment(record.store_timestamp),
        "bornHost": host(record.born_host),
        "storeHost": host(record.store_host),
        "reconsumeTimes": record.reconsume_times,
        "msgId": unique or offset_id,
        "offsetMsgId": offset_id,
        "bodyCRC": record.body_crc,
        "physicalOffset": record.position,
        "storeSize": record.size,
        "preparedTransactionOffset": record.prepared_transaction_offset,
        "transactionId": unique if properties.get("TRAN_MSG") == "true" else None,
    }
