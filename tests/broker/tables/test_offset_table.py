"""Consumer offsets: commits, resets, pull offsets, the file."""

import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.broker.tables.offset_table import NO_OFFSET, LmqOffsetTable, OffsetTable
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.text import fastjson
from pocketmq.store.clock import VirtualClock
from pocketmq.testing.state.parts import replace_content, restore_part, save_part


@pytest.fixture
def offsets(tmp_path: Path) -> OffsetTable:
    return OffsetTable(tmp_path / "config", VirtualClock().now_ms)


def reloaded(offsets: OffsetTable) -> OffsetTable:
    again = type(offsets)(offsets.file.path.parent, VirtualClock().now_ms)
    again.load()
    return again


def test_the_last_commit_wins_even_when_it_is_lower(offsets: OffsetTable):
    assert offsets.query("t", "g", 0) == NO_OFFSET
    for offset in (7, 3, -1):
        offsets.commit("t", "g", 0, offset)
        assert offsets.query("t", "g", 0) == offset
    assert offsets.query("t", "g", 1) == NO_OFFSET
    assert offsets.offsets("t", "g") == {0: -1}
    assert offsets.offsets("t", "other") is None


def test_every_500_commits_make_a_data_version(offsets: OffsetTable):
    for offset in range(1001):
        offsets.commit("t", "g", 0, offset)
    assert offsets.data_version.counter == 2


def test_a_reset_wins_until_it_is_used(offsets: OffsetTable):
    offsets.commit("t", "g", 0, 100)
    offsets.assign_reset("t", "g", 0, 5)
    assert offsets.has_reset("t", "g", 0)
    assert not offsets.has_reset("t", "g", 1)
    offsets.commit("t", "g", 0, 101)
    assert offsets.query("t", "g", 0) == 5
    assert offsets.take_reset("t", "g", 0) == 5
    assert offsets.take_reset("t", "g", 0) is None
    assert not offsets.has_reset("t", "g", 0)
    assert offsets.query("t", "g", 0) == 101


def test_a_reset_is_the_committed_offset_from_then_on(offsets: OffsetTable):
    offsets.assign_reset("t", "g", 3, 5)
    offsets.take_reset("t", "g", 3)
    assert offsets.query("t", "g", 3) == 5


@pytest.mark.parametrize(("queue_id", "offset"), [(-1, 5), (0, -1)])
def test_negative_resets_are_ignored(offsets: OffsetTable, queue_id: int, offset: int):
    offsets.assign_reset("t", "g", queue_id, offset)
    assert not offsets.has_reset("t", "g", queue_id)
    assert offsets.query("t", "g", queue_id) == NO_OFFSET


def test_the_pull_offset_falls_back_to_the_committed_one(offsets: OffsetTable):
    offsets.commit("t", "g", 0, 5)
    assert offsets.query_pull("t", "g", 0) == 5
    offsets.commit_pull("t", "g", 0, 9)
    assert offsets.query_pull("t", "g", 0) == 9
    assert offsets.query("t", "g", 0) == 5


def test_removing_a_group_or_topic_removes_resets_and_pull_offsets(offsets: OffsetTable):
    for topic, group in (("a", "g"), ("b", "g"), ("a", "h")):
        offsets.assign_reset(topic, group, 0, 5)
        offsets.commit_pull(topic, group, 0, 6)
    offsets.remove_group("g")
    assert offsets.query("a", "g", 0) == offsets.query_pull("b", "g", 0) == NO_OFFSET
    assert offsets.query("a", "h", 0) == 5
    offsets.remove_topics({"a"})
    assert offsets.query_pull("a", "h", 0) == NO_OFFSET
    offsets.commit("a", "h", 0, 1)
    offsets.remove("a", "h")
    assert offsets.offsets("a", "h") is None


def test_a_cloned_group_is_independent(offsets: OffsetTable):
    offsets.commit("t", "g", 0, 5)
    offsets.clone("g", "h", "t")
    offsets.clone("nobody", "g", "t")
    offsets.commit("t", "h", 0, 6)
    assert (offsets.query("t", "g", 0), offsets.query("t", "h", 0)) == (5, 6)


def test_lowest_offsets_skip_filtered_groups_and_deleted_messages_and_change_nothing(offsets: OffsetTable):
    offsets.commit("t", "a", 0, 50)
    offsets.commit("t", "b", 0, 30)
    offsets.commit("t", "c", 0, 10)
    offsets.commit("t", "c", 1, 10)
    offsets.commit("other", "a", 0, 1)
    before = offsets.to_json()
    assert offsets.min_offsets("t", lambda queue_id: 0) == {0: 10, 1: 10}
    assert offsets.min_offsets("t", lambda queue_id: 0, ["c"]) == {0: 30}
    assert offsets.min_offsets("t", lambda queue_id: 20) == {0: 30}
    assert offsets.to_json() == before


def test_a_slave_merges_its_masters_offsets(offsets: OffsetTable):
    offsets.commit("mine", "g", 0, 1)
    offsets.commit("t", "g", 5, 1)
    offsets.merge({"t@g": {0: 9}}, DataVersion(counter=3))
    assert offsets.offsets("t", "g") == {0: 9}
    assert offsets.query("mine", "g", 0) == 1
    assert offsets.data_version.counter == 3


# --- text


def answer_to_43(offsets: OffsetTable) -> bytes:
    text = offsets.text()
    for _ in text.parts():
        pass
    return text.whole()


def test_the_answer_to_43_has_only_members_every_slave_knows(offsets: OffsetTable):
    offsets.commit("t", "g", 0, 5)
    offsets.commit_pull("t", "g", 0, 5)
    version = offsets.data_version.encode().decode()
    assert answer_to_43(offsets).decode() == f'{{"dataVersion":{version},"offsetTable":{{"t@g":{{0:5}}}}}}'


def test_the_answer_to_43_is_made_in_parts_while_groups_commit_and_leave(offsets: OffsetTable):
    for number in range(250):
        offsets.commit("t", f"g{number:03}", 0, number)
    text = offsets.text()
    parts = text.parts()
    next(parts)
    offsets.commit("t", "g249", 0, 7)
    offsets.commit("t", "new", 0, 1)
    offsets.remove("t", "g248")
    assert sum(1 for _ in parts) == 2
    table = fastjson.loads(text.whole())["offsetTable"]
    assert len(table) == 249
    assert table["t@g000"] == {0: 0}
    assert table["t@g249"] == {0: 7}
    assert {"t@g248", "t@new"}.isdisjoint(table)


def test_the_file_has_quoted_queue_ids_everywhere(offsets: OffsetTable):
    offsets.commit("orders", "billing", 0, 120)
    offsets.commit_pull("orders", "billing", 0, 121)
    offsets.persist()
    text = offsets.file.path.read_text().replace("\n", "").replace("\t", "")
    assert '"groupTopicMap":{"billing":["orders"]}' in text
    assert '"offsetTable":{"orders@billing":{"0":120}}' in text
    assert '"pullOffsetTable":{"orders@billing":{"0":121}}' in text


def test_pull_offsets_and_resets_do_not_survive_a_restart(offsets: OffsetTable):
    offsets.assign_reset("t", "g", 0, 5)
    offsets.commit_pull("t", "g", 0, 9)
    offsets.persist()
    again = reloaded(offsets)
    assert again.query("t", "g", 0) == again.query_pull("t", "g", 0) == 5
    assert not again.has_reset("t", "g", 0)


@pytest.mark.parametrize("quote", ["", '"'])
def test_official_files_are_read_with_and_without_quotes(offsets: OffsetTable, quote: str):
    offsets.file.path.parent.mkdir()
    offsets.file.path.write_text(
        f'{{\n\t"offsetTable":{{"%RETRY%g@g":{{{quote}0{quote}:3}},"t@g":{{{quote}0{quote}:5,{quote}1{quote}:7\n\t}}}},'
        f'"pullOffsetTable":{{"t@g":{{{quote}0{quote}:9}}}}}}'
    )
    born_with = offsets.data_version
    offsets.load()
    assert offsets.data_version == born_with
    assert offsets.offsets("t", "g") == {0: 5, 1: 7}
    assert offsets.offsets("%RETRY%g", "g") == {0: 3}


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["a", "b", "%RETRY%g"]), st.sampled_from(["g", "h"])),
        st.dictionaries(st.integers(0, 9), st.integers(-1, 2**62)),
    )
)
def test_offsets_are_loaded_from_the_file(tmp_path_factory: pytest.TempPathFactory, table: dict):
    offsets = OffsetTable(tmp_path_factory.mktemp("offsets"), VirtualClock().now_ms)
    for (topic, group), queues in table.items():
        for queue_id, offset in queues.items():
            offsets.commit(topic, group, queue_id, offset)
    offsets.persist()
    again = reloaded(offsets)
    for (topic, group), queues in table.items():
        assert again.offsets(topic, group) == (queues or None)


# --- light queues


def test_light_queues_have_plain_numbers_in_their_own_file(tmp_path: Path):
    offsets = LmqOffsetTable(tmp_path, VirtualClock().now_ms)
    offsets.commit("%LMQ%x", "%LMQ%g", 7, 5)
    offsets.commit("t", "g", 1, 3)
    assert offsets.query("%LMQ%x", "%LMQ%g", 0) == offsets.query("%LMQ%x", "%LMQ%g", 9) == 5
    body = fastjson.loads(answer_to_43(offsets))
    assert body["lmqOffsetTable"] == {"%LMQ%x@%LMQ%g": 5}
    assert body["offsetTable"] == {"t@g": {1: 3}}
    offsets.persist()
    assert (tmp_path / "lmqConsumerOffset.json").exists()
    again = reloaded(offsets)
    assert again.query("%LMQ%x", "%LMQ%g", 0) == 5
    assert again.query("t", "g", 1) == 3
    again.remove_group("%LMQ%g")
    assert again.query("%LMQ%x", "%LMQ%g", 0) == NO_OFFSET


_NAMES = st.sampled_from(["a", "b", "a@b", "%RETRY%a"])
_CHANGES = st.one_of(
    st.tuples(st.sampled_from(["commit", "assign_reset"]), _NAMES, _NAMES, st.just(0), st.integers(0, 3)),
    st.tuples(st.sampled_from(["remove", "clone"]), _NAMES, _NAMES),
    st.tuples(st.sampled_from(["remove_group", "remove_topic"]), _NAMES),
    st.tuples(st.sampled_from(["reload", "restore", "merge"])),
)


@given(st.lists(_CHANGES, max_size=20))
def test_the_topics_of_each_group_are_those_of_the_offsets(changes: list[tuple[str, *tuple[object, ...]]]):
    with tempfile.TemporaryDirectory() as folder:
        table = OffsetTable(Path(folder), VirtualClock().now_ms)
        begin = save_part(table)
        for name, *words in changes:
            if name == "clone":
                table.clone(str(words[0]), "target", str(words[1]))
            elif name == "remove_topic":
                table.remove_topics({str(words[0])})
            elif name == "reload":
                replace_content(table, table.to_json())
            elif name == "restore":
                restore_part(table, begin)
            elif name == "merge":
                table.merge({"m@g": {0: 1}}, DataVersion())
            else:
                getattr(table, name)(*words)
            keys = [key.split("@") for key in save_part(table)["_offsets"]]
            pairs = {(group, topic) for topic, group in (key for key in keys if len(key) == 2)}
            assert {(group, one) for group in table.groups() for one in table.topics_of(group)} == pairs
            assert {one for one, _ in pairs} == set(table.groups())
            topics = {topic for _, topic in pairs}
            assert {(one, topic) for topic in topics for one in table.groups_of(topic)} == pairs


def test_removing_a_topic_costs_what_it_has_not_what_the_table_has(tmp_path: Path) -> None:
    table = OffsetTable(tmp_path, VirtualClock().now_ms)
    for number in range(20_000):
        table.commit(f"t{number}", "g", 0, 1)
    used = time.thread_time()
    for number in range(2000):
        table.remove_topics({f"t{number}"})
    assert time.thread_time() - used < 2  # each looked at all keys: 20 s
