"""Consumer examples: they get each message once and unchanged, and commit when they shut down."""

import re
import time

import pytest

from conformance.examples.printed import PULLED, Received, received
from conformance.examples.world import (
    BROADCAST_ONE,
    BROADCAST_TWO,
    GROUPS,
    LITE_ASSIGN,
    LITE_SUBSCRIBE,
    PULL_SCHEDULE,
    PUSH,
    QUEUES,
    QUICKSTART,
    TAG_FILTER,
    World,
)

# One entry of a local offset file: fastjson writes the whole queue as the key.
LOCAL_OFFSET = re.compile(r'"queueId":\s*(\d)[^}]*\}\s*:\s*(\d+)')
LITE_PULL_MESSAGE = 361
REQUEST_CODE_NOT_SUPPORTED = 3
OLD_BROKER = "a 4.9 broker gives nothing to the lite pull consumer of 5.x"
PROPERTIES = {"CLUSTER", "CONSUME_START_TIME", "MAX_OFFSET", "MIN_OFFSET", "TAGS", "UNIQ_KEY"}
# 5.x brokers keep properties that 4.9 strips, and add some: in the record's bytes and in what a consumer sees.
PROPERTIES_SINCE_5 = {"MSG_REGION", "TRACE_ON", "WAIT"}
RECORD_OVERHEAD = {"4.9": 174, "5.5": 224}


def judge_all_of_topic_test(world: World, messages: list[Received]) -> None:
    """Every offset of the topic once; each message is the one that its producer's send result names."""
    by_place = {(message.queue, message.offset): message for message in messages}
    assert len(by_place) == len(messages)
    each = world.topic_test_count // 4
    assert by_place.keys() == {(queue, offset) for queue in QUEUES for offset in range(each)}
    assert {place: by_place[place].unique_key for place in world.topic_test} == world.topic_test
    assert len({message.unique_key for message in messages}) == len(messages)
    for result in world.send_results["quickstart.Producer"]:
        assert by_place[result.queue, result.offset].offset_id == result.offset_ids[0]
    assert {message.reconsumed for message in messages} == {0}


@pytest.mark.parametrize("name", [QUICKSTART, PUSH])
def test_push_consumer_reads_history_once_and_commits_on_leaving(world: World, name: str) -> None:
    world.wait_for_messages(name, world.topic_test_count)
    judge_all_of_topic_test(world, world.stop(name))
    world.wait_until_equal(lambda: world.committed(name, "TopicTest"), world.sizes("TopicTest"))


@pytest.mark.parametrize("name", [BROADCAST_ONE, BROADCAST_TWO])
def test_each_broadcast_consumer_reads_everything_and_keeps_its_own_offsets(world: World, name: str) -> None:
    world.wait_for_messages(name, world.topic_test_count)
    judge_all_of_topic_test(world, world.stop(name))
    instance = name.split()[1]
    (folder,) = (world.server.programs.home / ".rocketmq_offsets").glob(f"*@{instance}")
    text = (folder / GROUPS[name] / "offsets.json").read_text(encoding="utf-8")
    kept = {int(queue): int(offset) for queue, offset in LOCAL_OFFSET.findall(text)}
    assert kept == world.sizes("TopicTest")


def test_messages_arrive_with_the_properties_a_consumer_expects(world: World) -> None:
    first = world.wait_for_messages(QUICKSTART, world.topic_test_count)[0]
    more = PROPERTIES_SINCE_5 if world.server.emulates == "5.5" else set()
    assert first.properties.keys() == PROPERTIES | more
    assert first.properties["CLUSTER"] == "DefaultCluster"


def test_message_sizes_are_those_of_the_official_store(world: World) -> None:
    # quickstart.Producer's bodies are 16 to 18 bytes long, the rest of its record is always the same.
    messages = world.wait_for_messages(QUICKSTART, world.topic_test_count)
    sent = {(result.queue, result.offset) for result in world.send_results["quickstart.Producer"]}
    quickstart = [message for message in messages if (message.queue, message.offset) in sent]
    assert {message.size - len(message.body) for message in quickstart} == {
        RECORD_OVERHEAD[world.server.emulates]
    }


def test_tag_filter_consumer_gets_its_tags_and_commits_past_the_others(world: World) -> None:
    world.wait_for_messages(TAG_FILTER, 40)
    sizes = world.sizes("TagFilterTest")
    # Committed while it runs: also the offsets of messages that the broker filtered out.
    world.wait_until_equal(lambda: world.committed(TAG_FILTER, "TagFilterTest"), sizes)
    messages = world.stop(TAG_FILTER)
    tags = [message.properties["TAGS"] for message in messages]
    assert {tag: tags.count(tag) for tag in set(tags)} == {"TagA": 20, "TagC": 20}
    wanted = {
        answer.ids[0] for n, answer in enumerate(world.send_results["filter.TagFilterProducer"]) if n % 3 != 1
    }
    assert {message.unique_key for message in messages} == wanted


def test_pull_schedule_service_walks_each_queue_without_a_gap(world: World) -> None:
    sizes = world.sizes("TopicTest")
    act = world.acts[PULL_SCHEDULE]

    def ends(output: str) -> dict[int, int]:
        return {int(pull["queue"]): int(pull["next"]) for pull in PULLED.finditer(output)}

    act.wait_until("pull at the end of each queue", lambda output: ends(output) == sizes)
    world.stop(PULL_SCHEDULE)
    at = dict.fromkeys(QUEUES, 0)
    for pull in PULLED.finditer(act.output):
        queue, offset, found = int(pull["queue"]), int(pull["offset"]), int(pull["found"])
        assert offset == at[queue]
        assert found == int(pull["next"]) - offset
        at[queue] = int(pull["next"])
    assert at == sizes
    world.wait_until_equal(lambda: world.committed(PULL_SCHEDULE, "TopicTest"), sizes)


def test_old_broker_refuses_the_lite_pull_of_new_clients(world: World) -> None:
    if world.pulls_lite:
        pytest.skip("client and broker agree about lite pulls")
    refusal = world.server.call(LITE_PULL_MESSAGE, consumerGroup=GROUPS[LITE_SUBSCRIBE], topic="TopicTest")
    assert refusal.code == REQUEST_CODE_NOT_SUPPORTED
    # The client retries for ever, and its user gets only empty lists.
    assert set(world.acts[LITE_SUBSCRIBE].wait_for(r"^\[\]$").split()) == {"[]"}


def test_lite_pull_consumer_subscribed_commits_by_itself(world: World) -> None:
    if not world.pulls_lite:
        pytest.skip(OLD_BROKER)
    world.wait_for_messages(LITE_SUBSCRIBE, world.topic_test_count)
    sizes = world.sizes("TopicTest")
    world.wait_until_equal(lambda: world.committed(LITE_SUBSCRIBE, "TopicTest"), sizes)
    judge_all_of_topic_test(world, world.stop(LITE_SUBSCRIBE))


def test_lite_pull_consumer_assigned_starts_where_it_sought(world: World) -> None:
    if not world.pulls_lite:
        pytest.skip(OLD_BROKER)
    world.stop(TAG_FILTER)  # the same group, whose members must subscribe to the same topics
    each = world.topic_test_count // 4
    act = world.start(LITE_ASSIGN)

    def offsets(output: str) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        for message in received(output):
            found.setdefault(message.queue, set()).add(message.offset)
        return found

    def is_all(output: str) -> bool:
        return [max(places) for places in offsets(output).values()] == [each - 1, each - 1]

    there = offsets(act.wait_until("last message of two queues", is_all))
    starts = sorted(min(places) for places in there.values())
    # It seeks just after it assigned. Now and then the client's first pull, from 0, is earlier; no broker can see why.
    assert starts in ([0, 10], [0, 0])
    for places in there.values():
        assert places == set(range(min(places), each))
    time.sleep(0.3)  # it prints what poll returned and then commits it
    world.stop(LITE_ASSIGN)
    world.wait_until_equal(
        lambda: world.committed(LITE_ASSIGN, "TopicTest", there), dict.fromkeys(there, each)
    )
