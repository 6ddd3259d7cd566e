"""The figures of a broker: windows of 315, rates and totals of 28. Expectations follow the official StatsItem."""

from datetime import datetime
from pathlib import Path

import pytest
from pocketmq.broker import figures
from pocketmq.broker.broker import Broker
from pocketmq.broker.figures import PutTimes
from pocketmq.protocol.bodies.broker import BrokerStatsData, BrokerStatsItem
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC
from pocketmq.store import VirtualClock, WallClock

from broker_fakes import close_broker, make_broker, store_message

_ZEROS = dict.fromkeys(("stats_minute", "stats_hour", "stats_day"), BrokerStatsItem())


def pass_seconds(broker: Broker, clock: VirtualClock, seconds: int) -> None:
    """Let time pass as the broker's own rhythm sees it: one sample a second."""
    for _ in range(seconds):
        clock.advance(1000)
        list(broker.statistics.sample())


def found(broker: Broker, name: str, key: str) -> BrokerStatsData:
    data = broker.statistics.find(name, key)
    assert data is not None
    return data


def minute(broker: Broker, name: str, key: str) -> tuple[int, float, float]:
    item = found(broker, name, key).stats_minute
    assert item is not None
    return item.sum, item.tps, item.avgpt


class TestSeries:
    def test_a_message_shows_after_the_next_ten_seconds(self, broker: Broker, clock: VirtualClock) -> None:
        broker.statistics.count_put("T2", 1, 177)
        assert minute(broker, "TOPIC_PUT_NUMS", "T2") == (0, 0.0, 0.0)
        pass_seconds(broker, clock, 10)
        # These six numbers are what an official broker answered one and two snapshots after one send.
        assert minute(broker, "TOPIC_PUT_NUMS", "T2") == (1, 0.1, 1.0)
        assert minute(broker, "TOPIC_PUT_SIZE", "T2") == (177, 17.7, 177.0)
        pass_seconds(broker, clock, 10)
        assert minute(broker, "TOPIC_PUT_NUMS", "T2") == (1, 0.05, 1.0)
        assert minute(broker, "TOPIC_PUT_SIZE", "T2") == (177, 8.85, 177.0)

    def test_a_minute_forgets_what_is_older(self, broker: Broker, clock: VirtualClock) -> None:
        broker.statistics.count_put("T", 6, 600)
        pass_seconds(broker, clock, 60)
        assert minute(broker, "TOPIC_PUT_NUMS", "T") == (6, 0.1, 6.0)
        pass_seconds(broker, clock, 10)
        assert minute(broker, "TOPIC_PUT_NUMS", "T")[0] == 0

    def test_hour_and_day_have_their_own_snapshots(self, broker: Broker, clock: VirtualClock) -> None:
        broker.statistics.count_put("T", 5, 50)
        pass_seconds(broker, clock, 3601)
        data = found(broker, "TOPIC_PUT_NUMS", "T")
        assert data.stats_minute is not None
        assert data.stats_hour is not None
        assert data.stats_day is not None
        assert (data.stats_minute.sum, data.stats_hour.sum, data.stats_day.sum) == (0, 5, 5)
        pass_seconds(broker, clock, 3600)
        data = found(broker, "TOPIC_PUT_NUMS", "T")
        assert data.stats_hour is not None
        assert data.stats_day is not None
        assert (data.stats_hour.sum, data.stats_day.sum) == (0, 5)

    def test_groups_are_counted_by_topic_and_group(self, broker: Broker, clock: VirtualClock) -> None:
        broker.statistics.message_got("T", "g", 32, 3200)
        broker.statistics.message_got("T", "g", 8, 800)
        broker.statistics.message_got("T", "other", 1, 100)
        pass_seconds(broker, clock, 10)
        assert minute(broker, "GROUP_GET_NUMS", "T@g") == (40, 4.0, 20.0)
        assert minute(broker, "GROUP_GET_SIZE", "T@g") == (4000, 400.0, 2000.0)
        assert minute(broker, "BROKER_GET_NUMS", "DefaultCluster") == (41, 4.1, 0.0)

    def test_nothing_is_known_of_a_series_without_traffic(self, broker: Broker) -> None:
        for name, key in (
            ("TOPIC_PUT_NUMS", "T"),
            ("GROUP_GET_NUMS", "T@g"),
            ("SNDBCK_PUT_NUMS", "T@g"),
            ("BROKER_PUT_NUMS", "DefaultCluster"),
            ("BROKER_PUT_NUMS", "elsewhere"),
            ("QUEUE_PUT_NUMS", "T@0"),
            ("NOPE", "x"),
        ):
            assert broker.statistics.find(name, key) is None

    def test_system_topics_count_only_in_the_full_sum(self, broker: Broker, clock: VirtualClock) -> None:
        broker.statistics.count_put("T", 1, 10)
        broker.statistics.count_put(SCHEDULE_TOPIC, 2, 20, 4)
        pass_seconds(broker, clock, 10)
        assert minute(broker, "BROKER_PUT_NUMS", "DefaultCluster")[0] == 3
        assert minute(broker, "BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC", "DefaultCluster")[0] == 1
        assert minute(broker, "QUEUE_PUT_NUMS", f"{SCHEDULE_TOPIC}@4") == (2, 0.2, 2.0)

    def test_the_4_line_has_no_sums_without_system_topics(self, broker4: Broker) -> None:
        broker4.statistics.count_put("T", 1, 10)
        broker4.statistics.dead_letter(None, "g", "T")
        assert broker4.statistics.find("BROKER_PUT_NUMS", "DefaultCluster") is not None
        assert broker4.statistics.find("BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC", "DefaultCluster") is None
        assert broker4.statistics.find("SNDBCK2DLQ_TIMES", "null@T@g@SEND_BACK_TO_DLQ") is None

    def test_latencies_of_what_was_read_and_put_are_no_time(self, broker: Broker, broker4: Broker) -> None:
        for each in (broker, broker4):
            each.statistics.count_put("T", 1, 10)
            each.statistics.message_got("T", "g", 1, 10)
            assert found(each, "GROUP_GET_LATENCY", "0@T@g") == BrokerStatsData(**_ZEROS)
            assert each.statistics.find("GROUP_GET_LATENCY", "0@T@other") is None
        assert found(broker, "TOPIC_PUT_LATENCY", "0@T") == BrokerStatsData(**_ZEROS)
        assert broker.statistics.find("TOPIC_PUT_LATENCY", "0@U") is None
        assert broker4.statistics.find("TOPIC_PUT_LATENCY", "0@T") is None

    def test_a_delivered_message_counts_as_read_and_as_put(self, broker: Broker, clock: VirtualClock) -> None:
        broker.statistics.count_delayed_delivery("T", 2, 120)
        pass_seconds(broker, clock, 10)
        assert minute(broker, "TOPIC_PUT_SIZE", "T")[0] == 120
        assert minute(broker, "GROUP_GET_NUMS", f"{SCHEDULE_TOPIC}@SCHEDULE_CONSUMER")[0] == 1
        assert minute(broker, "QUEUE_GET_NUMS", f"{SCHEDULE_TOPIC}@2@SCHEDULE_CONSUMER")[0] == 1
        assert broker.statistics.find("BROKER_GET_NUMS", "DefaultCluster") is None

    def test_deleting_a_topic_or_group_forgets_its_series_but_not_the_sums(self, broker: Broker) -> None:
        statistics = broker.statistics
        for topic, group in (("T", "g"), ("T", "h"), ("U", "g"), ("U", "h")):
            statistics.count_put(topic, 1, 1)
            statistics.message_got(topic, group, 1, 1)
            statistics.count_sent_back(group, topic, 1, None)
        statistics.forget({"T"})
        statistics.forget(groups={"g"})
        left = [key for key in ("T@g", "T@h", "U@g", "U@h") if statistics.find("GROUP_GET_NUMS", key)]
        sent_back = [key for key in ("T@g", "T@h", "U@g", "U@h") if statistics.find("SNDBCK_PUT_NUMS", key)]
        assert left == sent_back == ["U@h"]
        assert statistics.find("TOPIC_PUT_NUMS", "T") is None
        assert statistics.find("TOPIC_PUT_NUMS", "U") is not None
        assert statistics.put_total_now == 4

    def test_a_clock_set_back_does_not_stop_the_snapshots(self, broker: Broker, clock: VirtualClock) -> None:
        pass_seconds(broker, clock, 100)
        clock.set_now_ms(clock.now_ms() - 86_400_000)
        broker.statistics.count_put("T", 3, 30)
        pass_seconds(broker, clock, 20)
        assert minute(broker, "TOPIC_PUT_NUMS", "T")[0] == 3


class TestThroughput:
    def test_a_rate_is_known_when_its_span_is_over(self, broker: Broker, clock: VirtualClock) -> None:
        throughput = broker.statistics.throughput
        pass_seconds(broker, clock, 10)
        assert throughput.mean("stored", 10) is None
        for _ in range(5):
            store_message(broker, "T")
        pass_seconds(broker, clock, 1)
        assert throughput.mean("stored", 10) == 0.5
        assert throughput.mean("stored", 60) is None
        pass_seconds(broker, clock, 10)
        assert throughput.mean("stored", 10) == 0.0

    def test_reads_are_counted_as_found_or_missed(self, broker: Broker, clock: VirtualClock) -> None:
        store_message(broker, "T")
        store_message(broker, "T")
        pass_seconds(broker, clock, 1)
        assert broker.store.get_message("T", 0, 0, 32).count == 2
        broker.store.get_message("T", 0, 2, 32)
        broker.store.get_message("U", 0, 0, 32)
        pass_seconds(broker, clock, 10)
        throughput = broker.statistics.throughput
        rates = (
            throughput.mean("found", 10),
            throughput.mean("missed", 10),
            throughput.mean("transferred", 10),
        )
        assert rates == pytest.approx((0.1, 0.2, 0.2))


class TestDayTotals:
    def test_midnight_makes_today_yesterday(self, broker: Broker, clock: VirtualClock) -> None:
        statistics, totals = broker.statistics, broker.statistics.day_totals
        midnights = [datetime(2023, 11, day).timestamp() * 1000 for day in (16, 17)]
        statistics.count_put("T", 10, 100)
        statistics.count_put(SCHEDULE_TOPIC, 1, 10, 0)
        statistics.message_got("T", "g", 4, 40)
        clock.set_now_ms(int(midnights[0]) - 1)
        list(statistics.sample())
        assert (totals.put_today_morning, totals.got_today_morning) in ((0, 0), (10, 4))
        clock.set_now_ms(int(midnights[0]))
        list(statistics.sample())
        assert (totals.put_today_morning, totals.got_today_morning) == (10, 4)
        statistics.count_put("T", 5, 50)
        assert statistics.put_total_now == 15
        clock.set_now_ms(int(midnights[1]))
        list(statistics.sample())
        assert (totals.put_yesterday_morning, totals.put_today_morning) == (10, 15)
        assert (totals.got_yesterday_morning, totals.got_today_morning) == (4, 4)

    def test_the_4_line_counts_everything_stored(self, broker4: Broker) -> None:
        store_message(broker4, SCHEDULE_TOPIC, 1)
        assert broker4.statistics.put_total_now == 1


class TestPutTimes:
    def test_only_the_last_whole_minute_counts(self) -> None:
        times = PutTimes(0)
        times.roll(59_000, [100, 7, *[0] * 11])
        assert times.counts == [0] * 13
        times.roll(60_000, [100, 7, *[0] * 11])
        assert times.counts == [100, 7, *[0] * 11]
        times.roll(120_000, [150, 7, 1, *[0] * 10])
        assert times.counts == [50, 0, 1, *[0] * 10]

    def test_percentiles_are_interpolated_inside_a_class(self) -> None:
        times = PutTimes(0)
        assert times.percentile_ms(0.99) == 0.0
        times.roll(60_000, [900, 100, *[0] * 11])
        assert times.percentile_ms(0.5) == pytest.approx(500 / 900)
        assert times.percentile_ms(0.99) == pytest.approx(1 + 9 * 0.9)


class TestVirtualTime:
    @pytest.mark.parametrize("seconds", [1, 9, 10, 65, 130, 700, 4000, 40_000])
    async def test_a_jump_leaves_the_figures_of_its_seconds_one_by_one(
        self, tmp_path: Path, seconds: int
    ) -> None:
        seen = []
        for step in (1, seconds):
            clock = VirtualClock(wall=WallClock())
            broker = make_broker(tmp_path / str(step), clock)
            for _ in range(2):
                broker.statistics.count_put("T", 6, 600)
                store_message(broker, "T")
                for _ in range(seconds // step):
                    clock.advance(step * 1000)
                    list(broker.statistics.sample())
            throughput = broker.statistics.throughput
            seen.append(
                (
                    found(broker, "TOPIC_PUT_NUMS", "T"),
                    *(throughput.mean("stored", span) for span in (10, 60, 600)),
                )
            )
            close_broker(broker)
        one_by_one, at_once = seen
        assert at_once == one_by_one


async def test_series_named_by_clients_are_limited(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MAX_EVENTS", 10)
    for number in range(100):
        broker.statistics.dead_letter(f"owner{number}", "g", "orders")
    broker.statistics.dead_letter("o" * 10_000, "g", "orders")
    assert len(broker.statistics._events) == 10
    assert broker.statistics.find("SNDBCK2DLQ_TIMES", "owner3@orders@g@SEND_BACK_TO_DLQ") is not None
