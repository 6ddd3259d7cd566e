"""The topic table: the built-in topics, what a send creates, what an administrator may change."""

from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.tables.attributes import AttributeRefusedError
from pocketmq.broker.tables.topic_table import TopicTable
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.text import fastjson
from pocketmq.store.clock import VirtualClock
from pocketmq.store.errors import StoreDamagedError, StoreError


def table(
    folder: Path,
    clock: VirtualClock,
    *,
    enable_lmq: bool = False,
    timer_wheel_enable: bool = True,
    **settings: Any,
) -> TopicTable:
    config = BrokerConfig(**settings)
    config.store.enable_lmq, config.store.timer_wheel_enable = enable_lmq, timer_wheel_enable
    return TopicTable(folder / "config", clock.now_ms, config)


@pytest.fixture
def topics(tmp_path: Path, clock: VirtualClock) -> TopicTable:
    return table(tmp_path, clock)


def queues_and_perm(topics: TopicTable) -> dict[str, tuple[int, int, int]]:
    return {
        name: (config.read_queue_nums, config.write_queue_nums, config.perm)
        for name, config in topics.topics.items()
    }


BOTH_LINES = {
    "SELF_TEST_TOPIC": (1, 1, 6),
    "TBW102": (8, 8, 7),
    "BenchmarkTest": (1024, 1024, 6),
    "DefaultCluster": (16, 16, 7),
    "broker-a": (1, 1, 7),
    "OFFSET_MOVED_EVENT": (1, 1, 6),
    "SCHEDULE_TOPIC_XXXX": (18, 18, 6),
    "DefaultCluster_REPLY_TOPIC": (1, 1, 6),
}
ONLY_5 = {
    "rmq_sys_REVIVE_LOG_DefaultCluster": (8, 8, 6),
    "rmq_sys_SYNC_BROKER_MEMBER_broker-a": (1, 1, 1),
    "RMQ_SYS_TRANS_HALF_TOPIC": (1, 1, 6),
    "RMQ_SYS_TRANS_OP_HALF_TOPIC": (1, 1, 6),
    "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC": (1, 1, 6),
    "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC": (1, 1, 6),
    "rmq_sys_wheel_timer": (1, 1, 6),
}


def test_built_in_topics_of_both_lines(tmp_path: Path, clock: VirtualClock):
    assert queues_and_perm(table(tmp_path, clock, emulate=4)) == BOTH_LINES
    assert queues_and_perm(table(tmp_path, clock)) == BOTH_LINES | ONLY_5


def test_settings_control_the_built_in_topics(tmp_path: Path, clock: VirtualClock):
    topics = queues_and_perm(
        table(
            tmp_path,
            clock,
            auto_create_topic_enable=False,
            trace_topic_enable=True,
            cluster_topic_enable=False,
            broker_topic_enable=False,
            timer_wheel_enable=False,
        )
    )
    assert "TBW102" not in topics
    assert "rmq_sys_wheel_timer" not in topics
    assert topics["RMQ_SYS_TRACE_TOPIC"] == (1, 1, 6)
    assert topics["DefaultCluster"] == (16, 16, 1)
    assert topics["broker-a"] == (1, 1, 1)


def test_system_topics_are_reserved_names_and_those_of_this_broker(topics: TopicTable):
    for name in ("TBW102", "DefaultCluster", "broker-a", "rmq_sys_anything", "TRANS_CHECK_MAX_TIME_TOPIC"):
        assert topics.is_system_topic(name)
    assert not topics.is_system_topic("orders")
    assert "orders" not in topics.system_topics


def test_the_4_line_does_not_reserve_the_names_of_5(tmp_path: Path, clock: VirtualClock):
    topics = table(tmp_path, clock, emulate=4)
    assert not topics.is_system_topic("CHECKPOINT_TOPIC")
    assert not any("ROCKSDB" in name for name in topics.system_topics)
    assert topics.is_system_topic("RMQ_SYS_TRANS_HALF_TOPIC")


# --- creation by a send


@pytest.mark.parametrize(("wanted", "queues"), [(4, 4), (8, 8), (100, 8), (0, 0), (-5, 0)])
def test_a_send_creates_with_the_smaller_queue_number(topics: TopicTable, wanted: int, queues: int):
    config = topics.create_for_send("orders", "TBW102", wanted, topic_sys_flag=1)
    assert config == TopicConfig(
        topic_name="orders", read_queue_nums=queues, write_queue_nums=queues, perm=6, topic_sys_flag=1
    )
    assert topics.find("orders") is config


def test_a_template_that_is_missing_or_not_inherited_creates_nothing(topics: TopicTable):
    version = topics.data_version
    assert topics.create_for_send("orders", "no-such-topic", 4) is None
    assert topics.create_for_send("orders", "BenchmarkTest", 4) is None
    assert topics.data_version == version
    assert "orders" not in topics


def test_an_existing_topic_is_returned_whatever_the_template(topics: TopicTable):
    created = topics.create_for_send("orders", "TBW102", 4)
    assert topics.create_for_send("orders", "no-such-topic", 99) is created


def test_a_stored_template_creates_nothing_once_auto_creation_is_off(tmp_path: Path, clock: VirtualClock):
    before = table(tmp_path, clock)
    before.create_for_send("orders", "TBW102", 4)
    before.persist()
    topics = table(tmp_path, clock, auto_create_topic_enable=False)
    topics.load()
    assert topics.create_for_send("other", "TBW102", 4) is None
    assert topics.topics["TBW102"].perm == 6


def test_retry_topics_are_created_without_a_template(topics: TopicTable):
    created = topics.create_for_send_back("%RETRY%g", 1, 6, 2)
    assert (created.write_queue_nums, created.perm, created.topic_sys_flag) == (1, 6, 2)
    assert topics.create_for_send_back("%RETRY%g", 5, 4, 0) is created
    assert topics.create_for_send_back("%RETRY%g", 1, order=True).order is True


# --- administration


def test_every_change_makes_a_new_data_version_and_is_announced(tmp_path: Path, clock: VirtualClock):
    announced: list[int] = []
    topics = TopicTable(tmp_path, clock.now_ms, BrokerConfig())
    topics.on_change = lambda: announced.append(topics.data_version.counter)
    clock.advance(5)
    topics.update(TopicConfig(topic_name="orders"))
    assert topics.data_version == DataVersion(timestamp=clock.now_ms(), counter=1)
    assert topics.delete("orders") is True
    assert topics.delete("orders") is False
    assert announced == [1, 2]


def test_update_applies_attribute_changes_to_the_stored_ones(topics: TopicTable):
    topics.update(TopicConfig(topic_name="orders", attributes={"+message.type": "FIFO"}))
    topics.update(TopicConfig(topic_name="orders", perm=4, attributes={"+reserve.time": "5"}))
    assert topics.topics["orders"].attributes == {"message.type": "FIFO", "reserve.time": "5"}
    assert topics.topics["orders"].message_type == "FIFO"
    with pytest.raises(AttributeRefusedError, match="unchangeable"):
        topics.update(TopicConfig(topic_name="orders", perm=6, attributes={"+queue.type": "BatchCQ"}))
    assert topics.topics["orders"].perm == 4


@pytest.mark.parametrize("text", ["1_000", " 5", "5 ", "5.0", "", "+", "9223372036854775808", "9" * 5000])
def test_a_number_that_java_does_not_read_is_refused(topics: TopicTable, text: str):
    """Official tools could not read the table."""
    with pytest.raises(AttributeRefusedError, match="For input string"):
        topics.update(TopicConfig(topic_name="orders", attributes={"+reserve.time": text}))
    assert "orders" not in topics.topics
    topics.update(TopicConfig(topic_name="orders", attributes={"+reserve.time": "+5"}))
    assert topics.topics["orders"].attributes == {"reserve.time": "+5"}


def test_4_x_ignores_attributes(tmp_path: Path, clock: VirtualClock):
    topics = table(tmp_path, clock, emulate=4)
    topics.update(TopicConfig(topic_name="orders", attributes={"+no.such": "1"}))
    assert topics.topics["orders"].attributes == {}


def test_the_name_servers_ordered_topics_are_marked(topics: TopicTable):
    topics.update(TopicConfig(topic_name="orders"))
    counter = topics.data_version.counter
    topics.mark_ordered(["orders", "unknown"])
    topics.mark_ordered(["orders"])
    assert topics.is_order_topic("orders")
    assert not topics.is_order_topic("unknown")
    assert topics.data_version.counter == counter + 1


def test_light_queues_are_in_no_table(tmp_path: Path, clock: VirtualClock):
    topics = table(tmp_path, clock, enable_lmq=True)
    config = topics.find("%LMQ%x")
    assert config is not None
    assert (config.read_queue_nums, config.perm) == (1, 6)
    assert topics.update(TopicConfig(topic_name="%LMQ%x")) is None
    assert "%LMQ%x" not in topics.topics
    assert "%LMQ%x" not in table(tmp_path, clock)


def test_pages_are_sorted_and_start_again_when_the_table_changed(topics: TopicTable):
    names = sorted(topics.topics)
    seen = topics.data_version.encode().decode()
    assert list(topics.page(None, 0, 4)) == names[:4]
    assert list(topics.page(seen, 4, 4)) == names[4:8]
    assert list(topics.page(None, 4, 4)) == names[:4]
    assert list(topics.page("not json", 4, 4)) == names[:4]
    assert topics.page(seen, 999, 4) == {}
    topics.update(TopicConfig(topic_name="orders"))
    assert list(topics.page(seen, 4, 2)) == sorted(topics.topics)[:2]


# --- the file


def test_the_table_is_loaded_from_its_file(tmp_path: Path, clock: VirtualClock):
    topics = table(tmp_path, clock)
    topics.update(
        TopicConfig(topic_name="orders", read_queue_nums=3, order=True, attributes={"+message.type": "FIFO"})
    )
    assert topics.persist() is True
    assert topics.persist() is False
    again = table(tmp_path, clock)
    assert again.load() is True
    assert again.topics == topics.topics
    assert again.data_version == topics.data_version
    assert again.persist() is False


def test_the_file_has_the_official_form(tmp_path: Path, clock: VirtualClock):
    topics = table(tmp_path, clock)
    topics.replace_all(
        {"orders": TopicConfig(topic_name="orders", read_queue_nums=8, write_queue_nums=8)}, DataVersion()
    )
    topics.persist()
    assert (tmp_path / "config" / "topics.json").read_text().replace("\t", "").replace("\n", "") == (
        '{"dataVersion":{"counter":0,"stateVersion":0,"timestamp":0},"topicConfigTable":{"orders":{"attributes":{},'
        '"order":false,"perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"orders",'
        '"topicSysFlag":0,"writeQueueNums":8}}}'
    )
    assert fastjson.loads(topics.to_json()) == fastjson.loads(
        (tmp_path / "config" / "topics.json").read_bytes()
    )


@pytest.mark.parametrize("content", ['{"topicConfigTable":[]}', "{"])
def test_a_damaged_file_is_refused_and_not_loaded_in_part(tmp_path: Path, clock: VirtualClock, content: str):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "topics.json").write_text(content)
    with pytest.raises(StoreDamagedError, match=r"topics\.json"):
        table(tmp_path, clock).load()


def test_a_failed_save_stays_dirty(tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch):
    topics = table(tmp_path, clock)
    topics.update(TopicConfig(topic_name="orders"))
    (tmp_path / "config").write_text("a file where the folder should be")
    with pytest.raises(StoreError, match="cannot write"):
        topics.persist()
    assert topics.dirty
    (tmp_path / "config").unlink()
    assert topics.persist() is True
