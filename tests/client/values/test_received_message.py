"""A received message: what it keeps in memory, and what it still knows after its pull is gone."""

import tracemalloc
import zlib

import msgspec
import pytest
from pocketmq.client.values.message import MessageExt, decode_messages
from pocketmq.protocol.message.flags import COMPRESSED
from pocketmq.protocol.message.record import Record, encode_record

PROPERTIES = b"UNIQ_KEY\x01A1\x02TAGS\x01red\x02"
PLAIN = Record("Orders", 1, 5, 1000, b"x" * 4000, PROPERTIES, flag=7, born_timestamp=17, store_timestamp=18)
PACKED = msgspec.structs.replace(PLAIN, body=zlib.compress(bytes(4000)), sys_flag=COMPRESSED)


@pytest.mark.parametrize("record", [PLAIN, PACKED], ids=["plain", "compressed"])
@pytest.mark.parametrize("is_read", [False, True])
def test_a_message_that_is_kept_does_not_keep_its_pull(record: Record, is_read: bool) -> None:
    def kept() -> MessageExt:
        reply = encode_record(record) + encode_record(PLAIN) * 31
        message = decode_messages(reply, "b")[0]
        if is_read:
            assert (message.tags, message.flag) == ("red", 7)
        return message

    kept()
    tracemalloc.start()
    try:
        message = kept()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(message.body) == 4000
    assert held < 12_000, "a pull has 130,000 bytes"


def test_what_is_asked_for_later_is_what_was_stored() -> None:
    message = decode_messages(encode_record(PLAIN), "b", min_offset=2, max_offset=9)[0]
    assert (message.born_timestamp, message.store_timestamp, message.commit_log_offset) == (17, 18, 1000)
    assert message.store_size == len(encode_record(PLAIN))
    assert message.properties == {"UNIQ_KEY": "A1", "TAGS": "red", "MIN_OFFSET": "2", "MAX_OFFSET": "9"}


def test_a_hook_may_replace_the_body() -> None:
    message = decode_messages(encode_record(PLAIN), "b")[0]
    message.body = b"other"
    assert (message.flag, message.tags, message.body) == (7, "red", b"other")
