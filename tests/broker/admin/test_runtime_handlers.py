"""28 and 315: figures, and the forms in which the official brokers write them.

The keys of 4.9.7 and 5.5.0 are in the recorded conversation `queries`.
"""

import re

import pytest
from pocketmq.broker.admin.runtime_handlers import java_double, readable_bytes
from pocketmq.broker.broker import Broker
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC
from pocketmq.protocol.requests.admin import GetBrokerRuntimeInfo, ViewBrokerStatsData
from pocketmq.store import VirtualClock

from broker_fakes import ask, store_message


async def runtime_info(broker: Broker) -> dict[str, str]:
    answer = await ask(broker, GetBrokerRuntimeInfo())
    assert answer.code == 0
    table: dict[str, str] = answer.json["table"]
    return table


async def test_a_level_without_an_offset_is_not_mentioned(broker4: Broker) -> None:
    """4.9: nothing of it has been delivered yet."""
    store_message(broker4, SCHEDULE_TOPIC, 2, properties={"DELAY": "3"})
    store_message(broker4, SCHEDULE_TOPIC, 17, properties={"DELAY": "18"})
    broker4.delays.update(3, 0)
    info = await runtime_info(broker4)
    assert [key for key in info if key.startswith("scheduleMessageOffset")] == ["scheduleMessageOffset_3"]


async def test_an_empty_broker_says_so(broker: Broker) -> None:
    info = await runtime_info(broker)
    assert info["commitLogMinOffset"] == info["earliestMessageTimeStamp"] == "-1"
    assert info["commitLogMaxOffset"] == info["putMessageTimesTotal"] == "0"
    assert info["putMessageAverageSize"] == "0.0"
    assert info["putTps"] == info["getTransferredTps"] == "  "
    assert info["getTotalTps"] == "0.0 0.0 0.0"
    assert info["putLatency99"] == "0.00"
    assert info["remainHowManyDataToFlush"] == "0 B"
    assert not [key for key in info if key.startswith("scheduleMessageOffset")]


async def test_figures_follow_what_happened(broker: Broker, clock: VirtualClock) -> None:
    first_ms = clock.now_ms()
    store_message(broker, "T", body=b"x" * 100)
    broker.statistics.count_put("T", 1, 200)
    clock.advance(90_061_000)
    store_message(broker, SCHEDULE_TOPIC, 2, properties={"DELAY": "3"})
    broker.delays.update(3, 0)
    for _ in range(11):
        clock.advance(1000)
        list(broker.statistics.sample())
    info = await runtime_info(broker)
    assert info["putMessageTimesTotal"] == "2"
    assert info["putMessageSizeTotal"] == info["commitLogMaxOffset"] == str(broker.store.log_end)
    assert float(info["putMessageAverageSize"]) == broker.store.log_end / 2
    assert info["earliestMessageTimeStamp"] == str(first_ms)
    assert info["runtime"] == "[ 1 days, 1 hours, 1 minutes, 12 seconds ]"
    assert info["scheduleMessageOffset_3"] == "0,1"
    assert info["putTps"] == "0.0  "
    assert info["msgPutTotalTodayNow"] == "1"
    assert info["remainHowManyDataToFlush"] == f"{broker.store.log_end} B"
    assert re.fullmatch(r"0\.\d\d?|1\.0", info["commitLogDiskRatio"])
    assert re.fullmatch(r"Total : [\d.]+ \w?i?B, Free : [\d.]+ \w?i?B\.", info["commitLogDirCapacity"])
    classes = "<=0ms 0~10ms 10~50ms 50~100ms 100~200ms 200~500ms 500ms~1s 1~2s 2~3s 3~4s 4~5s 5~10s 10s~"
    assert re.findall(r"\[([^\]]+)\]:\d+ ", info["putMessageDistributeTime"]) == classes.split()


async def test_a_series_is_answered_in_the_official_form(broker: Broker, clock: VirtualClock) -> None:
    broker.statistics.count_put("T2", 1, 177)
    clock.advance(10_000)
    list(broker.statistics.sample())
    answer = await ask(broker, ViewBrokerStatsData(stats_name="TOPIC_PUT_SIZE", stats_key="T2"))
    nothing = '{"avgpt":0.0,"sum":0,"tps":0.0}'
    minute = '{"avgpt":177.0,"sum":177,"tps":17.7}'
    expected = f'{{"statsDay":{nothing},"statsHour":{nothing},"statsMinute":{minute}}}'
    assert answer.body.decode() == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (231.70833333333334, "231.70833333333334"),
        (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12_345_678.5, "1.23456785E7"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert java_double(value) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (927, "927 B"),
        (1024, "1.0 KiB"),
        (1_048_575, "1024.0 KiB"),
        (79 * 2**30 + 2**29, "79.5 GiB"),
        (2**60 * 7, "7.0 EiB"),
    ],
)
def test_sizes_are_written_as_the_official_broker_writes_them(count: int, text: str) -> None:
    assert readable_bytes(count) == text
