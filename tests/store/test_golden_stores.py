"""Stores of official brokers open here, with the content that those brokers showed.

`golden/stores/` has a stopped one and a killed one of each line, with the broker's own answers;
`tests/conformance/recorders/record_stores.py` recorded them. Each emulated line must read the stores of both lines.
`tests/conformance/stores/test_cross_store.py` tests what needs a running broker (delivery, retries).
"""

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.tables.delay_table import DelayTable
from pocketmq.broker.tables.group_table import GroupTable
from pocketmq.broker.tables.offset_table import OffsetTable
from pocketmq.broker.tables.topic_table import TopicTable
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import decode_record
from pocketmq.store import MessageStore, NewMessage, PutStatus, WallClock
from pocketmq.store.at_rest.check import check_store

from store_batches import open_small, records_of

STORES = Path(__file__).parent.parent / "golden" / "stores"
NAMES = ("4.9-stop", "4.9-kill", "5.5-stop", "5.5-kill")


class Golden:
    """An unpacked store and its broker's answers."""

    def __init__(self, name: str, folder: Path) -> None:
        with tarfile.open(STORES / f"{name}.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        self.root = folder / "store"
        self.expected: dict[str, Any] = json.loads((folder / "expected.json").read_text())
        self.stopped = name.endswith("stop")

    def open(self, emulate: int) -> MessageStore:
        sizes = {"mapped_file_size_commit_log": 1 << 17, "mapped_file_size_consume_queue": 1200}
        sizes |= {"max_hash_slot_num": 64, "max_index_num": 300}
        levels = "1s 4s 1s 3600s"
        return open_small(self.root, WallClock(), message_delay_level=levels, emulate=emulate, **sizes)


@pytest.fixture(params=NAMES)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    return Golden(request.param, tmp_path)


@pytest.mark.parametrize("emulate", [4, 5])
def test_queues_and_messages_are_those_the_official_broker_showed(golden: Golden, emulate: int) -> None:
    store = golden.open(emulate)
    assert store.recovery_report is not None
    assert store.recovery_report.clean == golden.stopped
    for queue in golden.expected["queues"]:
        topic, queue_id = queue["topic"], queue["queueId"]
        place = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
        assert place == (queue["minOffset"], queue["maxOffset"]), topic
        found = []
        for record in records_of(store, topic, queue_id):
            named = decode_properties(bytes(record.properties))
            place_and_words = [
                record.queue_offset,
                record.position,
                named.get("KEYS", ""),
                named.get("TAGS", ""),
            ]
            found.append([*place_and_words, hashlib.sha256(record.body).hexdigest()[:16]])
        assert found == queue["messages"], topic
    store.close()


def test_keys_find_their_messages(golden: Golden) -> None:
    store = golden.open(5)
    assert golden.expected["keys"]
    for table in (golden.expected["keys"], golden.expected["uniqueKeys"]):
        for name, positions in table.items():
            topic, _, key = name.partition("#")
            views = store.query(topic, key, 64, 0, 1 << 62).views
            assert sorted(decode_record(view).position for view in views) == positions, name
    store.close()


def test_tables_are_read(golden: Golden) -> None:
    folder, expected = golden.root / "config", golden.expected
    clock = WallClock()
    offsets, delays = OffsetTable(folder, clock.now_ms), DelayTable(folder, clock.now_ms, "1s 4s 1s 3600s")
    topics = TopicTable(folder, clock.now_ms, BrokerConfig(broker_cluster_name="c", broker_name="b"))
    groups = GroupTable(folder, clock.now_ms, BrokerConfig())
    for table in (offsets, delays, topics, groups):
        assert table.load()
    for place, queues in expected["offsets"].items():
        topic, _, group = place.partition("@")
        for queue_id, offset in queues.items():
            assert offsets.query(topic, group, int(queue_id)) == offset
    for name, config in expected["topics"].items():
        topic_config = topics.find(name)
        assert topic_config is not None
        assert (topic_config.read_queue_nums, topic_config.perm) == (config["readQueueNums"], config["perm"])
    assert "rmq_sys_wheel_timer" in topics.topics, "a built-in topic, also where the file is of the 4.9 line"
    for level, offset in expected["delays"].items():
        assert delays.offset(int(level)) == offset
    for name, config in expected["groups"].items():
        group_config = groups.find(name)
        assert group_config is not None
        assert group_config.retry_max_times == config["retryMaxTimes"]


def test_store_accepts_messages_and_stays_undamaged(golden: Golden) -> None:
    store = golden.open(5)
    queue = next(one for one in golden.expected["queues"] if one["topic"] == "Plain")
    for number in range(200):
        result = store.append(NewMessage("Plain", queue["queueId"], b"x" * 900, b""))
        assert (result.status, result.queue_offset) == (PutStatus.PUT_OK, queue["maxOffset"] + number)
    store.close()
    assert not check_store(golden.root).damaged
