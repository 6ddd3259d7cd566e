"""Bytes of the log: the official vector, the filler, the limits of messages."""

import pytest
from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.protocol.message.record import (
    BLANK_MAGIC,
    FILLER,
    MAGIC_V1,
    MAGIC_V2,
    decode_record,
    encode_record,
    has_valid_crc_property,
)
from pocketmq.store import NewMessage, PutStatus
from pocketmq.testing.state.rewinding import rewinding_of

from store_batches import bodies, leave_as_killed, new_message, put

VECTOR_A = bytes.fromhex(
    "00000083DAA320A731EDD7A100000003000000000000000000000007000000004000000000000000"
    "0000018BCFE568000A0000080000C3CB0000018BCFE568050A00000900002A9F000000000000000000000000"
    "0000000968656C6C6F20726D710A64656D6F2D746F7069630015544147530154616741024B455953016B65792D3102"
)


def test_appended_message_has_the_bytes_of_the_official_vector(open_store, clock, tmp_path):
    """The store that is continued sets queue offset 7 and log position 1 GiB."""
    log = tmp_path / "store" / "commitlog"
    log.mkdir(parents=True)
    (log / "00000000001073741824").write_bytes(bytes(4096))
    store = open_store()
    clock.set_now_ms(1700000000005)
    store._queues.get_or_create("demo-topic", 3).next_offset = 7
    result = store.append(
        NewMessage(
            "demo-topic",
            3,
            b"hello rmq",
            b"TAGS\x01TagA\x02KEYS\x01key-1\x02",
            born_timestamp=1700000000000,
            born_host=pack_host("10.0.0.8", 50123),
            store_host=pack_host("10.0.0.9", 10911),
        )
    )
    assert (result.position, result.size, result.queue_offset) == (1073741824, 131, 7)
    assert (log / "00000000001073741824").read_bytes()[:131] == VECTOR_A
    queue = tmp_path / "store" / "consumequeue" / "demo-topic" / "3" / f"{0:020d}"
    assert queue.read_bytes()[140:160].hex() == "0000000040000000" + "00000083" + "000000000027a807"
    assert queue.read_bytes()[:140] == bytes.fromhex("0000000000000000" + "7fffffff" + "0000000000000000") * 7


@pytest.mark.parametrize("gap", [0, 1, 7])
def test_last_record_of_a_file_leaves_at_least_eight_bytes(open_store, gap):
    """A record of L bytes starts at S - 8 - L at the latest."""
    store = open_store()
    size = put(store, body=b"").size
    first = store.log_end
    put(store, body=bytes(4096 - 8 - first - size - size - gap))
    assert put(store, body=b"").position == 4096 - 8 - size - gap
    assert store.log_end == 4096 - 8 - gap
    assert put(store, body=b"").position == 4096
    head = store.log.files[0].map[4096 - 8 - gap : 4096 - gap]
    assert FILLER.unpack(head) == (8 + gap, BLANK_MAGIC)


def test_record_that_would_leave_seven_bytes_opens_the_next_file(open_store):
    store = open_store()
    size = put(store, body=b"").size
    assert put(store, body=bytes(4096 - 7 - size - size)).position == 4096


def test_room_on_disk_is_reserved_before_a_record_is_written(open_store):
    """Writing through a map to a full disk would end the process."""
    store = open_store(mapped_file_size_commit_log=12 << 20)
    for _ in range(10):
        put(store, body=bytes(1_000_000))
        file = store.log.files[-1]
        assert file.written + FILLER.size <= file.reserved <= file.size
    assert len(store.log.files) == 1
    store.close()
    store = open_store(mapped_file_size_commit_log=12 << 20)
    first = store.log.files[0]
    put(store, body=bytes(3_000_000))
    assert len(store.log.files) == 2
    assert first.reserved >= 10_000_000 + FILLER.size, "room for the filler"


def test_bytes_that_look_like_the_head_of_a_record_beyond_the_end_are_none(open_store):
    """A client asks for any position it likes."""
    store = open_store()
    put(store, body=FILLER.pack(4000, MAGIC_V1) + FILLER.pack(0, MAGIC_V1) + FILLER.pack(20, 0))
    body_at = bytes(store.log.files[0].view).index(FILLER.pack(4000, MAGIC_V1))
    assert [store.read_record(body_at + at) for at in (0, 8, 16)] == [None] * 3
    assert store.read_record(store.log_end) is None
    assert store.read_record(store.log_end - 4) is None


@pytest.mark.parametrize(("position", "following"), [(0, 4096), (4095, 4096), (4096, 8192), (10_000, 12_288)])
def test_the_file_after_a_position_begins_at_the_next_multiple_of_its_size(open_store, position, following):
    """rollNextFile"""
    assert open_store().log.next_file_start(position) == following


def test_crc_is_of_the_body_alone_and_zero_without_one(open_store):
    store = open_store()
    with_body = decode_record(store.read_record(put(store, body=b"hello rmq").position))
    empty = decode_record(store.read_record(put(store, body=b"").position))
    assert (with_body.body_crc, empty.body_crc) == (837670817, 0)


def test_hosts_of_both_address_families_are_stored_with_their_flags(open_store):
    store = open_store()
    four, six = pack_host("1.2.3.4", 5), pack_host("fe80::1", 6)
    for born, stored, flag in ((four, four, 0), (six, four, 0x10), (four, six, 0x20), (six, six, 0x30)):
        message = new_message()
        message.born_host, message.store_host, message.sys_flag = born, stored, 0x1
        record = decode_record(store.read_record(store.append(message).position))
        assert (record.born_host, record.store_host, record.sys_flag) == (born, stored, 0x1 | flag)
        assert bytes(store.read_record(record.position)) == encode_record(record)
        assert store.store_time("orders", 0, record.queue_offset) == record.store_timestamp


def test_long_retry_topics_are_stored_as_version_2_and_other_long_topics_refused(open_store):
    store = open_store()
    topic = "%RETRY%" + "g" * 240
    record = decode_record(store.read_record(put(store, topic=topic).position))
    assert (record.magic, record.topic) == (MAGIC_V2, topic)
    assert bodies(store, topic) == [b"body"]
    assert decode_record(store.read_record(put(store, topic="t" * 127).position)).magic == MAGIC_V1
    for refused in ("t" * 128, "%RETRY%" + "g" * 250, ""):
        assert put(store, topic=refused).status is PutStatus.MESSAGE_ILLEGAL


@pytest.mark.parametrize(
    ("body_bytes", "properties_bytes", "status"),
    [
        (1000, 0, PutStatus.PUT_OK),
        (1001, 0, PutStatus.MESSAGE_ILLEGAL),
        (0, 32767, PutStatus.PUT_OK),
        (0, 32768, PutStatus.PROPERTIES_SIZE_EXCEEDED),
    ],
)
def test_limits_of_body_and_properties(open_store, body_bytes, properties_bytes, status):
    store = open_store(max_message_size=1000, mapped_file_size_commit_log=65536)
    result = store.append(NewMessage("t", 0, bytes(body_bytes), bytes(properties_bytes)))
    assert result.status is status
    assert store.log_end == (result.size if status is PutStatus.PUT_OK else 0)
    assert store.max_offset("t", 0) == (1 if status is PutStatus.PUT_OK else 0)


def test_limit_of_the_body_can_be_changed_at_run_time(open_store):
    store = open_store()
    store.config.max_message_size = 3
    assert put(store, body=b"four").status is PutStatus.MESSAGE_ILLEGAL
    assert put(store, body=b"two").status is PutStatus.PUT_OK


def test_record_larger_than_a_file_is_refused_without_spoiling_the_file(open_store):
    store = open_store()
    put(store)
    end = store.log_end
    assert put(store, body=bytes(4096)).status is PutStatus.MESSAGE_ILLEGAL
    assert store.log_end == end


def test_whole_record_crc_is_appended_if_it_is_turned_on(open_store):
    settings = {"enabled_append_prop_crc": True, "force_verify_prop_crc": True}
    store = open_store(**settings)
    offsets = [put(store, TAGS="a").position, put(store).position]
    for offset in offsets:
        assert has_valid_crc_property(store.read_record(offset))
    # The CRC covers what bodyCRC does not: one bit of the second record's queue id.
    store.log.files[0].map[offsets[1] + 15] ^= 1
    leave_as_killed(store)
    store = open_store(**settings)
    assert store.recovery_report.placeholders == 1
    assert has_valid_crc_property(store.read_record(offsets[1]))


@pytest.mark.parametrize(
    ("text", "stored"), [(b"", b""), (b"TAGS\x01a", b"TAGS\x01a\x02"), (b"TAGS\x01a\x02", b"TAGS\x01a\x02")]
)
def test_the_crc_property_follows_one_separator(open_store, text, stored):
    """MessageExtEncoder adds a separator only if the text does not end in one."""
    store = open_store(enabled_append_prop_crc=True)
    result = store.append(NewMessage("orders", 0, b"body", text))
    record = decode_record(store.read_record(result.position))
    name, _, crc = bytes(record.properties).removeprefix(stored).partition(b"\x01")
    assert (name, len(crc)) == (b"__CRC32#", 11)


def test_new_file_that_cannot_be_created_is_reported_in_the_put_status(open_store, tmp_path):
    store = open_store()
    put(store, body=bytes(3000))
    in_the_way = tmp_path / "store" / "commitlog" / f"{4096:020d}"
    in_the_way.mkdir()
    assert put(store, body=bytes(3000)).status is PutStatus.CREATE_MAPPED_FILE_FAILED
    in_the_way.rmdir()
    assert put(store, body=bytes(3000)).status is PutStatus.PUT_OK


def test_first_log_file_is_created_before_the_first_message(open_store, tmp_path):
    """The caller that opens the store can wait for the disk; the loop that appends cannot."""
    first = tmp_path / "store" / "commitlog" / f"{0:020d}"
    store = open_store()
    assert first.exists()
    made = first.stat().st_ino
    assert put(store).position == 0
    assert first.stat().st_ino == made
    assert len(list(first.parent.iterdir())) == 1


def test_unused_first_log_file_is_deleted_at_a_stop(open_store, tmp_path):
    first = tmp_path / "store" / "commitlog" / f"{0:020d}"
    open_store().close()
    assert not first.exists()
    open_store(broker_role="SLAVE")
    assert not first.exists()


def test_records_changed_by_a_rewind_keep_a_valid_crc(open_store):
    """With a start that verifies it, a rewind before a clean stop would otherwise cost the messages behind it."""
    settings = {"enabled_append_prop_crc": True, "force_verify_prop_crc": True}
    store = open_store(**settings)
    put(store)
    copies = rewinding_of(store).records()
    mark = rewinding_of(store).mark()
    undone = put(store, body=b"undone").position
    rewinding_of(store).rewind(mark)
    put(store, body=b"later")
    rewinding_of(store).append_records(
        [bytes(copies[0][:20]) + (2).to_bytes(8, "big") + bytes(copies[0][28:])]
    )
    end = store.log_end
    assert has_valid_crc_property(store.read_record(undone))
    assert has_valid_crc_property(store.read_record(end - len(copies[0])))
    store.close()
    store = open_store(**settings)
    assert (store.log_end, store.max_offset("orders", 0)) == (end, 3)
    assert store.recovery_report.placeholders == 0
