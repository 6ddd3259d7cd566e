"""A snapshot brings back topics, groups, offsets, messages and timers; a bad file is named and changes nothing."""

from pathlib import Path

import msgpack
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pocketmq.testing import EmbeddedServer, RocketMQ, Snapshot, SnapshotError
from pocketmq.testing.state.snapshot import snapshot_of

from testing_acts import commit, pass_time, send_half, send_timed, texts

SERVER = {"virtual_time": True}


def fill(mq: RocketMQ) -> None:
    mq.topic("orders", queues=2)
    mq.group("billing")
    for number in range(4):
        mq.send("orders", str(number), keys=f"k{number}")
    commit(mq, "orders", "billing", 2, queue_id=1)


def test_topics_groups_offsets_and_messages_come_back_and_what_was_later_is_gone(
    mq: RocketMQ, tmp_path: Path
) -> None:
    fill(mq)
    before = mq.messages("orders")
    snapshot = mq.snapshot(tmp_path / "state.pocketmq")
    mq.send("orders", "later")
    mq.topic("another")
    for source in (snapshot, tmp_path / "state.pocketmq", str(tmp_path / "state.pocketmq"), snapshot):
        mq.restore(source)
        now = mq.messages("orders")
        assert [(one.queue_id, one.queue_offset, one.text, one.message_id) for one in now] == [
            (one.queue_id, one.queue_offset, one.text, one.message_id) for one in before
        ]
        assert mq.offsets("orders", "billing") == {1: 2}
        assert "another" not in mq.server.broker.topics
        assert "billing" in mq.server.broker.groups
        assert mq.send("orders", "next", queue_id=0).queue_offset == 2


def test_what_was_to_come_still_comes(mq: RocketMQ) -> None:
    mq.topic("orders", queues=2)
    mq.send("orders", "delayed", delay_level=1)
    send_timed(mq, "timed", 2000)
    send_half(mq, "half")
    snapshot = mq.snapshot()
    with EmbeddedServer(virtual_time=True) as other:
        there = RocketMQ(other)
        there.restore(snapshot)
        assert texts(there) == []
        assert sorted(one.text for one in there.delayed) == ["delayed", "timed"]
        assert [one.text for one in there.half_messages] == ["half"]
        pass_time(there, 6000)
        assert sorted(texts(there)) == ["delayed", "timed"]
        pass_time(there, 6000)
        assert sorted(texts(there)) == ["delayed", "timed"], "once"


def test_a_message_delivered_before_the_snapshot_does_not_come_again(mq: RocketMQ) -> None:
    mq.topic("orders", queues=2)
    send_timed(mq, "timed", 1000)
    pass_time(mq, 4000)
    assert texts(mq) == ["timed"]
    mq.restore(mq.snapshot())
    pass_time(mq, 4000)
    assert texts(mq) == ["timed"]


def test_equal_states_give_equal_files(mq: RocketMQ) -> None:
    fill(mq)
    assert mq.snapshot().to_bytes() == mq.snapshot().to_bytes()


def test_snapshot_and_restore_of_10000_messages(mq: RocketMQ, tmp_path: Path) -> None:
    mq.load({"topics": {"many": 8}, "messages": [{"topic": "many", "body": "x" * 100}] * 10_000})
    snapshot = mq.snapshot(tmp_path / "many.pocketmq")
    mq.send("many", b"not in the snapshot")
    mq.restore(snapshot)
    assert len(mq.messages("many")) == 10_000


# -- bad files


@pytest.fixture(scope="module")
def good(server: EmbeddedServer) -> bytes:
    mq = RocketMQ(server)
    fill(mq)
    data = mq.snapshot().to_bytes()
    server.reset()
    return data


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_cut_or_flipped_bytes_are_an_error_that_says_so(good: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(good) - 1))
    bit = data.draw(st.integers(0, 7))
    flipped = bytearray(good)
    flipped[at] ^= 1 << bit
    for bad in (good[:at], bytes(flipped)):
        with pytest.raises(SnapshotError):
            snapshot_of(bad)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"version": 2}, "has version 2, this program reads version 1 only"),
        ({"format": "another"}, "is not a snapshot of PocketMQ"),
        ({"state": b""}, "its checksum is not that of its content"),
    ],
)
def test_file_of_another_version_is_named_and_changes_nothing(
    mq: RocketMQ, good: bytes, tmp_path: Path, change: dict[str, object], complaint: str
) -> None:
    fill(mq)
    path = tmp_path / "bad.pocketmq"
    path.write_bytes(msgpack.packb({**msgpack.unpackb(good, raw=False), **change}))
    with pytest.raises(SnapshotError, match=complaint) as raised:
        mq.restore(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert sorted(texts(mq)) == ["0", "1", "2", "3"]


def test_missing_file_is_named(mq: RocketMQ, tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=r"^cannot read .*none\.pocketmq: No such file or directory$"):
        mq.restore(tmp_path / "none.pocketmq")
    with pytest.raises(SnapshotError, match=r"^cannot write .*: No such file or directory$"):
        mq.snapshot(tmp_path / "no" / "folder.pocketmq")


def test_restore_that_fails_half_way_brings_the_former_state_back(mq: RocketMQ, good: bytes) -> None:
    fill(mq)
    mq.send("orders", "still here")
    bad = snapshot_of(good)
    tables = {**bad.state.tables, "offsets": b"no JSON"}
    with pytest.raises(SnapshotError, match="nothing was changed"):
        mq.restore(Snapshot(msgspec.structs.replace(bad.state, tables=tables)))
    assert sorted(texts(mq)) == ["0", "1", "2", "3", "still here"]
    assert mq.offsets("orders", "billing") == {1: 2}
