"""Messages of a template: the same files, numbers and arrivals as one ordinary append after the other."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pocketmq.protocol.message.flags import HOSTS_IPV6, TRANSACTION_PREPARED
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.store import MessageStore, NewMessage, StoreConfig, VirtualClock
from pocketmq.store.log.record_template import whole_text

IDS = st.builds(
    lambda text, size: text.rjust(size, "7"),
    st.text("0123456789ABCDEF", min_size=1, max_size=8),
    st.sampled_from([32, 34, 16, 18]),
)
ODD_IDS = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=15, max_size=35)
IDS_WITH_PARTS = st.builds(
    lambda number, time: f"orders@0@{number}@g@{time}@broker-a@ack", st.integers(0, 999), st.integers(0, 9)
)
MESSAGES = st.tuples(
    st.integers(0, 2),
    st.binary(max_size=60),
    IDS | ODD_IDS | IDS_WITH_PARTS,
    st.integers(0, 1 << 40),
    st.just(0) | st.integers(0, 99),
)
SHARED = st.fixed_dictionaries(
    {},
    optional={
        "TAGS": st.sampled_from(["red", "blue"]),
        "KEYS": st.sampled_from(["a", "b c", "  "]),
        "DELAY": st.just("3"),
        "colour": st.text(
            st.characters(codec="utf-8", exclude_characters="\x01\x02"), min_size=1, max_size=5
        ),
    },
)
KINDS = st.fixed_dictionaries(
    {
        "shared": SHARED,
        "topic": st.sampled_from(["orders", "%RETRY%g", "SCHEDULE_TOPIC_XXXX"]),
        "flag": st.sampled_from([0, -1, 7]),
        "sys_flag": st.sampled_from([0, 1, TRANSACTION_PREPARED]),
        "id_first": st.booleans(),
        "has_id": st.booleans(),
        "final": st.booleans(),
        "shares_text": st.booleans(),
        "host": st.sampled_from([bytes(range(8)), bytes(20)]),
    }
)
CALLS = st.lists(st.tuples(KINDS, st.lists(MESSAGES, min_size=1, max_size=9)), max_size=9)


def files_of(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for part in ("commitlog", "consumequeue", "index")
        for path in sorted((directory / part).rglob("*"))
        if path.is_file()
    }


def message_of(kind, alike) -> NewMessage:
    queue_id, body, unique_id, born_timestamp, prepared_offset = alike
    of_id = {"UNIQ_KEY": unique_id} if kind["has_id"] else {}
    properties = {**of_id, **kind["shared"]} if kind["id_first"] else {**kind["shared"], **of_id}
    if not kind["shares_text"]:
        properties["number"] = str(born_timestamp)
        if kind["id_first"] and "KEYS" in properties:
            properties["KEYS"] += f" {born_timestamp}"
    return NewMessage(
        kind["topic"],
        queue_id,
        body,
        encode_properties(properties, final_separator=kind["final"]),
        properties,
        kind["flag"],
        kind["sys_flag"],
        born_timestamp,
        kind["host"],
        bytes(8),
        3,
        prepared_offset,
    )


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    calls=CALLS,
    emulate=st.sampled_from([4, 5]),
    crc=st.booleans(),
    index=st.booleans(),
    sync=st.booleans(),
    flushes=st.integers(0, 1 << 9),
)
def test_files_and_arrivals_equal_those_of_ordinary_appends(
    tmp_path_factory: pytest.TempPathFactory, crash, calls, emulate, crc, index, sync, flushes
) -> None:
    folder = tmp_path_factory.mktemp("alike")
    seen: dict[str, list[object]] = {"alike": [], "ordinary": []}
    files = {}
    for way, arrivals in seen.items():
        config = StoreConfig(
            store_path_root_dir=str(folder / way),
            emulate=emulate,
            mapped_file_size_commit_log=4096,
            mapped_file_size_consume_queue=200,
            max_hash_slot_num=8,
            max_index_num=40,
            enabled_append_prop_crc=crc and not sync,  # arrivals read from the log have it, others do not
            message_index_enable=index,
            flush_disk_type="SYNC_FLUSH" if sync else "ASYNC_FLUSH",
        )
        clock = VirtualClock(1_700_000_000_000)
        store = MessageStore(
            config, clock, on_arrival=lambda *it, to=arrivals: to.append(it), flush_in_background=False
        )
        store.open()
        places: list[object] = []
        for number, (kind, messages) in enumerate(calls):
            ordinary = [message_of(kind, message) for message in messages]
            stored, done, shares_text = None, 0, kind["shares_text"]
            template = store.template(ordinary[0], shares_text=shares_text) if way == "alike" else None
            if template is not None:
                ids = [message[2].encode() if kind["has_id"] else b"" for message in messages]
                texts = ids if shares_text else [whole_text(message.properties) for message in ordinary]
                alike = [
                    (queue_id, body, text, born, prepared)
                    for (queue_id, body, _, born, prepared), text in zip(messages, texts, strict=True)
                ]
                stored = store.append_alike(template, alike)
            if stored is not None:
                done = len(stored.positions)
                times = [stored.store_timestamp] * done
                places += zip(stored.positions, stored.sizes, stored.queue_offsets, times, strict=True)
                assert stored.end == store.log_end
            for message in ordinary[done:]:
                result = store.append(message)
                places.append((result.position, result.size, result.queue_offset, result.store_timestamp))
            clock.advance(700)
            if flushes >> number & 1:
                dispatch_flushed(store, from_log=way == "ordinary")
        dispatch_flushed(store, from_log=way == "ordinary")
        arrivals += places
        arrivals.append((store.statistics.messages, store.statistics.bytes, store.statistics.failed))
        crash(store)  # closing would wait for the disk
        files[way] = files_of(folder / way)
    assert seen["alike"] == seen["ordinary"]
    assert files["alike"] == files["ordinary"]


def dispatch_flushed(store: MessageStore, *, from_log: bool) -> None:
    if from_log:
        store._appending.forget_held()
    store.log.files.flushed = store.log_end  # waiting for the disk takes long
    store.dispatch_flushed()


ID = "7F0000010001000000010000000A0001"


def alike(
    queue_id: int = 0, body: bytes = b"body", unique_id: str = ID
) -> tuple[int, bytes, bytes, int, int]:
    return queue_id, body, unique_id.encode(), 0, 0


def test_messages_of_several_queues_are_stored_by_one_call(open_store, put, bodies):
    store = open_store(mapped_file_size_commit_log=1 << 16)
    first = [put(store, queue_id=number, UNIQ_KEY=ID) for number in range(3)]
    template = store.template(message_of_id())
    stored = store.append_alike(template, [alike(number % 3, b"%d" % number) for number in range(6)])
    assert stored.queue_offsets == [1, 1, 1, 2, 2, 2]
    assert stored.positions[0] == first[-1].position + first[-1].size
    assert [bodies(store, queue_id=number) for number in range(3)] == [
        [b"body", b"0", b"3"],
        [b"body", b"1", b"4"],
        [b"body", b"2", b"5"],
    ]
    assert len(store.query("orders", ID, 99, 0, 1 << 62).views) == 9


def message_of_id(topic: str = "orders", **properties: str) -> NewMessage:
    properties = {"UNIQ_KEY": ID} | properties
    return NewMessage(topic, 0, b"", encode_properties(properties), properties)


def test_nothing_is_stored_of_messages_that_an_ordinary_append_must_judge(open_store, put):
    store = open_store(max_message_size=100)
    template = store.template(message_of_id())
    assert store.append_alike(template, [alike()]) is None, "the queue has no message yet"
    put(store)
    assert store.append_alike(template, [alike(body=bytes(101))]) is None
    stored = store.append_alike(template, [alike(), alike(), alike(1), alike()])
    assert stored.queue_offsets == [1, 2], "queue 1 has no message yet"
    stored = store.append_alike(template, [alike(body=bytes(100))] * 30)
    assert stored.end <= 4096 - 8, "the log begins a new file"
    assert stored.end + stored.sizes[0] > 4096 - 8
    assert store.append_alike(template, [alike(body=bytes(100))]) is None
    assert (store.statistics.messages, store.statistics.failed) == (3 + len(stored.sizes), 0)
    end = store.log_end
    store.close()
    assert store.append_alike(template, [alike()]) is None
    assert store.log_end == end


@pytest.mark.parametrize(
    "wrong", [(0, b"", ID.encode(), 1 << 63, 0), (0, memoryview(b"a"), ID.encode(), 0, 0)]
)
def test_a_value_that_no_record_can_hold_is_left_to_an_ordinary_append(open_store, put, bodies, wrong):
    store = open_store()
    put(store)
    template = store.template(message_of_id())
    assert store.append_alike(template, [wrong]) is None
    assert store.append_alike(template, [alike(body=b"whole"), wrong, alike()]).queue_offsets == [1]
    end = store.log_end
    assert not any(store.log.files[-1].view[end : end + 300]), "bytes behind the end would look like records"
    assert store.append_alike(template, [alike(body=b"next")]).queue_offsets == [2]
    assert bodies(store) == [b"body", b"whole", b"next"]


@pytest.mark.parametrize("unique_id", [ID[1:].encode(), ID.encode() + b"0", b"\xff" * 32])
def test_an_id_that_is_none_is_left_to_an_ordinary_append(open_store, put, unique_id):
    store = open_store()
    put(store)
    stored = store.append_alike(
        store.template(message_of_id()), [alike(), (0, b"", unique_id, 0, 0), alike()]
    )
    assert (stored.queue_offsets, stored.end) == ([1], store.log_end)


def test_a_text_that_no_record_can_hold_is_refused():
    assert whole_text(b"ab") == b"\0\2ab"
    with pytest.raises(ValueError, match="the limit is 32767"):
        whole_text(bytes(32_768))


def test_messages_that_need_more_than_filling_in_have_no_template(open_store):
    store = open_store(enable_lmq=True, enable_multi_dispatch=True)
    assert store.template(message_of_id()) is not None
    for message in (
        message_of_id("SCHEDULE_TOPIC_XXXX", DELAY="3"),
        message_of_id("t" * 300),
        message_of_id(INNER_MULTI_DISPATCH="%LMQ%a"),
        message_of_id(UNIQ_KEY="short"),
        message_of_id(XUNIQ_KEY=ID),
        message_of_id(big="x" * 33_000),
    ):
        assert store.template(message) is None
    for changed in (
        {"sys_flag": TRANSACTION_PREPARED},
        {"sys_flag": HOSTS_IPV6},
        {"born_host": bytes(20)},
        {"store_host": bytes(20)},
    ):
        message = message_of_id()
        for name, value in changed.items():
            setattr(message, name, value)
        assert store.template(message) is None
    assert (
        open_store(store.config.root.parent / "crc", enabled_append_prop_crc=True).template(message_of_id())
        is None
    )
