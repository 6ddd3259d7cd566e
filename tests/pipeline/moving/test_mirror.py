"""A mirror copies in order, continues where it was, and takes groups along."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pocketmq.pipeline.errors import OptionError, PipelineError
from pocketmq.pipeline.jobs.moving import mirroring
from pocketmq.pipeline.jobs.moving.mirror import Mirror
from pocketmq.pipeline.jobs.moving.mirror_positions import MirrorPositions
from pocketmq.pipeline.spark.session.own_folder import only_one
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.pipeline.tables.planning.ranges import QueueBounds, Range
from pocketmq.pipeline.tables.planning.topic_options import SourceOptions
from pocketmq.testing import EmbeddedServer, RocketMQ

from pipeline.moving.mirrors import mirror_of, run, run_command
from pipeline.topics import bodies, commit, filled, make, send
from waiting import wait_until


def test_two_mirrors_of_one_name_do_not_copy_a_topic_at_once(rocketmq: RocketMQ, target: RocketMQ) -> None:
    topic, other = rocketmq.topic("once", queues=1), rocketmq.topic("other", queues=1)
    rocketmq.send(topic, "m")
    mirror = mirror_of(rocketmq, target, topic)
    what = f"mirror default of {topic} from {rocketmq.namesrv_addr}"
    with only_one(what, what):
        with pytest.raises(PipelineError, match=f"^{what} runs already, as process {os.getpid()}$"):
            run(mirror)
        assert run(mirror_of(rocketmq, target, other)).lead.startswith("0 messages copied")
        assert run(msgspec.structs.replace(mirror, name="another")).lead.startswith("1 messages copied")
    assert run(mirror).lead.startswith("1 messages copied")


def test_copies_keep_order_keys_and_ids_and_a_second_run_continues(
    rocketmq: RocketMQ, target: RocketMQ
) -> None:
    topic = rocketmq.topic("mirrored", queues=3)
    for number in range(30):
        rocketmq.send(topic, f"m{number}", tags="AB"[number % 2], keys=f"k{number}", queue_id=number % 3)
    assert run(mirror_of(rocketmq, target, topic)).lead.startswith("30 messages copied")
    copies = target.messages(topic)
    for queue_id in range(3):
        assert [one.text for one in copies if one.queue_id == queue_id] == bodies(30, queue_id, 3)
    originals = {one.text: (one.message_id, one.tags, one.keys) for one in rocketmq.messages(topic)}
    assert {one.text: (one.message_id, one.tags, one.keys) for one in copies} == originals
    rocketmq.send(topic, "m30")
    report = run(mirror_of(rocketmq, target, topic))
    assert report.lead.startswith("1 messages copied")
    assert report.lead.endswith("0 waiting.")
    assert report.findings == []
    assert len(target.messages(topic)) == 31


def test_queues_are_copied_side_by_side_and_the_requests_of_one_wait_for_each_other(
    rocketmq: RocketMQ, target: RocketMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pocketmq.pipeline.jobs.moving.copies.BATCH_ROWS", 2)
    topic = filled(rocketmq, "beside", 24, queues=4)
    target.faults.delay(seconds=1.0, topic=topic, code="SEND_BATCH_MESSAGE", times=4)
    mirror = threading.Thread(target=run, args=(mirror_of(rocketmq, target, topic),))
    mirror.start()
    wait_until(lambda: len(target.messages(topic)) >= 8, timeout=30)
    first = [one.text for one in target.messages(topic)]
    mirror.join()
    assert sorted(first[:8]) == sorted(bodies(8)), "two of each queue, none answered"
    assert len(target.messages(topic)) == 24


@pytest.mark.parametrize(("queues", "most"), [(1, 6), (2, 3), (5, 2)])
def test_few_queues_have_more_pulls_in_flight_and_a_round_is_never_more_than_a_search(
    rocketmq: RocketMQ, target: RocketMQ, monkeypatch: pytest.MonkeyPatch, queues: int, most: int
) -> None:
    """The queues share one of the target, in which a search passes over six messages."""
    read: list[tuple[int, int]] = []

    class Reader(mirroring.RangeReader):
        def __init__(self, client: Any, part: Range, options: SourceOptions, **more: Any) -> None:
            read.append((part.size, options.pulls_in_flight))
            super().__init__(client, part, options, **more)

    monkeypatch.setattr(mirroring, "RangeReader", Reader)
    monkeypatch.setattr(mirroring, "STEP", 2)
    monkeypatch.setattr(mirroring, "MAX_SCANNED", 6 if queues < 5 else 10)
    topic = filled(rocketmq, f"few{queues}", 7 * queues, queues=queues)
    make(target, topic)
    assert run(mirror_of(rocketmq, target, topic)).lead.startswith(f"{7 * queues} messages copied")
    assert max(size for size, _ in read) == most
    assert read[0][1] == 256 // queues


class FakeClient:
    """A cluster that knows each position, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def committed(self, group: str, queues: list[Queue], timeout_ms: int) -> dict[Queue, int]:
        self.asked.append(len(queues))
        return {queue: 10 + queue.queue_id for queue in queues}


def test_the_positions_of_new_queues_are_asked_for_together() -> None:
    """Between distant clusters each answer takes long."""
    source, other = FakeClient(), FakeClient()
    positions = MirrorPositions(source, other, "group")  # type: ignore[arg-type]
    pairs = {Queue("T", "a", number): Queue("T", "b", number) for number in range(8)}
    positions.learn(pairs)
    for queue, place in pairs.items():
        held = QueueBounds(0, 100)
        assert positions.next_of(queue, held, starts_at_end=False, is_first_run=False) == 10 + queue.queue_id
        assert positions.reached_in(place) == 10 + queue.queue_id
    positions.learn(pairs)
    assert (source.asked, other.asked) == ([8], [8])


def test_copies_have_the_time_at_which_the_first_message_of_their_request_was_born(
    rocketmq: RocketMQ, target: RocketMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = filled(rocketmq, "born", 5)
    born = [one.born_timestamp for one in rocketmq.messages(topic)]
    run(mirror_of(rocketmq, target, topic))
    assert [one.born_timestamp for one in target.messages(topic)] == [born[0]] * 5
    monkeypatch.setattr("pocketmq.pipeline.jobs.moving.mirroring.BATCH_BYTES", 0)  # one by one
    run(mirror_of(rocketmq, target, topic, prefix="single-", name="single"))
    assert [one.born_timestamp for one in target.messages(f"single-{topic}")] == born


def test_groups_follow_to_the_translated_offsets(
    rocketmq: RocketMQ, target: RocketMQ, tmp_path: Path
) -> None:
    topic, group = rocketmq.topic("moving", queues=1), rocketmq.group("billing")
    send(rocketmq, topic, range(4))
    copies = mirror_of(rocketmq, target, topic, prefix="copy-", starts_at_end=True, name=topic)
    run(copies)  # its position is the end, so the offsets of the two sides differ
    send(rocketmq, topic, range(4, 14))
    commit(rocketmq, topic, group, {0: 7})
    mapped = msgspec.structs.replace(copies, groups=group, map_file=str(tmp_path / "map.jsonl"))
    report = run(mapped)
    assert "1 offsets of" in report.lead
    assert target.offsets(f"copy-{topic}", group) == {0: 3}, "offset 7 of the source is offset 3 of the copy"
    (line,) = map(json.loads, (tmp_path / "map.jsonl").read_text().splitlines())
    assert (line["first"], line["last"], line["toFirst"]) == (4, 13, 0)
    commit(rocketmq, topic, group, {0: 14})
    run(mapped)
    assert target.offsets(f"copy-{topic}", group) == {0: 10}, "a second run knows the offsets of the first"


@pytest.mark.parametrize("emulate", ["4.9", "5"])
def test_from_the_end_is_for_the_first_run_and_not_for_queues_that_are_added(
    target: RocketMQ, emulate: str
) -> None:
    """4.9 brokers say 0 for the offset of a group that has none."""
    topic = f"from-end-{emulate[0]}"
    with EmbeddedServer({"emulate": emulate}) as server:
        source = RocketMQ(server)
        source.topic(topic, queues=2)
        for queue_id in range(2):
            source.send(topic, f"old {queue_id}", queue_id=queue_id)
        latest = mirror_of(source, target, topic, starts_at_end=True)
        assert run(latest).lead.startswith("0 messages copied")
        source.send(topic, "new 0", queue_id=0)
        assert run(latest).lead.startswith("1 messages copied")
        source.topic(topic, queues=3)
        source.send(topic, "new 2", queue_id=2)
        assert run(latest).lead.startswith("1 messages copied")
        assert sorted(one.text for one in target.messages(topic)) == ["new 0", "new 2"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"target_namesrv_addr": "a:1"}, "--to-namesrv must be another cluster"),
        ({"groups": "g"}, "--map is required with --groups"),
        ({"name": "a b"}, "--name must have letters, digits"),
        ({"map_file": "/no/such/folder/map"}, "--map: folder /no/such/folder does not exist"),
        ({"topics": "T,SCHEDULE_TOPIC_XXXX"}, "--topics: SCHEDULE_TOPIC_XXXX belongs to the broker itself"),
        ({"topics": "rmq_sys_wheel_timer"}, "--topics: rmq_sys_wheel_timer belongs to the broker itself"),
        ({"target_namesrv_addr": "b"}, "--to-namesrv must be host:port"),
    ],
)
def test_mistakes_are_named(wrong: dict[str, Any], message: str) -> None:
    fine = Mirror(namesrv_addr="a:1", target_namesrv_addr="b:1", topics="T")
    fine.check()
    with pytest.raises(OptionError, match=message):
        msgspec.structs.replace(fine, **wrong).check()


def test_a_command_of_a_topic_that_does_not_exist_is_one_line(rocketmq: RocketMQ, target: RocketMQ) -> None:
    ran = run_command(rocketmq, target, "Nobody")
    assert (ran.exit_code, ran.output) == (2, "pocketmq: topic Nobody does not exist on any broker\n")
