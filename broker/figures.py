"""How many messages and bytes this broker stored and delivered, by topic, by group and in total, and how fast.

The send and pull paths call `count_put` and `message_got`, which only increase counters; the store has counters of
its own. `sample`, due every second, takes snapshots of both:

    every 1 s       keeps 601 of the store's sums        putTps ... of 28: mean of the last 10, 60 and 600 s
    every 10 s      keeps 7 of each series               minute
    every 10 min    keeps 7 of each series               hour       the three windows of 315
    every hour      keeps 25 of each series              day
    at midnight     the sums of this morning             today's and yesterday's totals of 28

A window is the difference of its last and first snapshot; a new series starts with a zero snapshot one step earlier.
So a message counts from the next snapshot on, as in the official broker. Mirrors `BrokerStatsManager`, `StatsItem`,
`StoreStatsService` and `BrokerStats`; all owned by the event loop.
"""

from collections import deque
from collections.abc import Generator, Iterator, Sequence, Set
from datetime import datetime
from typing import Final, Literal

from pocketmq.protocol.bodies.broker import BrokerStatsData, BrokerStatsItem
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC
from pocketmq.store import Clock, MessageStore
from pocketmq.store.put_statistics import PUT_TIME_LIMITS_MS

from .config.broker_config import BrokerConfig
from .tables.group_table import GroupTable
from .tables.topic_table import TopicTable

SCHEDULE_CONSUMER: Final = "SCHEDULE_CONSUMER"
"""The group under which delivered delayed messages are counted as read."""
MAX_EVENTS: Final = 100_000
"""Series of events; further ones are not counted. Clients choose parts of their keys."""
MAX_KEY_LENGTH: Final = 1024
_EVENTS_OF_5: Final = frozenset(
    ("SNDBCK2DLQ_TIMES", "GROUP_CK_NUMS", "BROKER_CK_NUMS", "GROUP_ACK_NUMS", "BROKER_ACK_NUMS")
)
TPS_SPANS_SECONDS: Final = (10, 60, 600)
WINDOW_STEPS_MS: Final = (10_000, 600_000, 3_600_000)
"""Of minute, hour and day."""
MAX_SNAPSHOTS: Final = 25

_CLASS_ENDS_MS: Final = (1, *PUT_TIME_LIMITS_MS[1:], 60_000)
"""The upper limit of each class of put times for interpolation; the last class has none, so a minute is used."""
_MINUTE_MS: Final = 60_000

Totals = tuple[int, int, int, int]
"""Messages stored, reads that found something, reads that found nothing, messages delivered: since the start."""

_Sum = tuple[int, int, int, int]
"""(time in ms, calls, messages, bytes)"""


class Traffic:
    """Sums since the start of one series, and their snapshots."""

    __slots__ = ("calls", "count", "size_bytes", "total", "windows")

    def __init__(self, total: "Traffic | None" = None) -> None:
        self.calls = 0
        self.count = 0
        self.size_bytes = 0
        self.total = total
        """The series over all topics, which counts the same messages."""
        self.windows: tuple[deque[_Sum], ...] = tuple(deque(maxlen=size) for size in (7, 7, MAX_SNAPSHOTS))

    def add(self, count: int, size_bytes: int, calls: int = 1) -> None:
        """Count messages here and in the total."""
        self.calls += calls
        self.count += count
        self.size_bytes += size_bytes
        total = self.total
        if total is not None:  # it has no total itself
            total.calls += calls
            total.count += count
            total.size_bytes += size_bytes

    def snapshot(self, window: int, step_ms: int, now_ms: int) -> None:
        sums = self.windows[window]
        if not sums:
            sums.append((now_ms - step_ms, 0, 0, 0))
        sums.append((now_ms, self.calls, self.count, self.size_bytes))


class Throughput:
    """The store's totals of stored and read messages, one snapshot a second."""

    def __init__(self) -> None:
        self._sums: deque[tuple[int, int, int, int, int]] = deque(maxlen=TPS_SPANS_SECONDS[-1] + 1)

    def snapshot(self, now_ms: int, stored: int, found: int, missed: int, transferred: int) -> None:
        self._sums.append((now_ms, stored, found, missed, transferred))

    def fill_gap(self, since_ms: int, now_ms: int, totals: Totals) -> None:
        """Take a snapshot of the present totals for each second between two times."""
        seconds = (now_ms - since_ms) // 1000
        for second in range(max(seconds - TPS_SPANS_SECONDS[-1], 1), seconds):
            self.snapshot(since_ms + second * 1000, *totals)

    def mean(self, of: Literal["stored", "found", "missed", "transferred"], seconds: int) -> float | None:
        """Messages stored, reads that found something or nothing, or messages delivered, a second over the last
        `seconds`; `None` until that many snapshots exist."""
        field = ("stored", "found", "missed", "transferred").index(of) + 1
        sums = self._sums
        if len(sums) <= seconds:
            return None
        first, last = sums[-(seconds + 1)], sums[-1]
        elapsed_ms = last[0] - first[0]
        return (last[field] - first[field]) / elapsed_ms * 1000.0 if elapsed_ms > 0 else 0.0


class DayTotals:
    """Messages stored and read until this morning and until yesterday morning (since the start of the broker)."""

    def __init__(self, now_ms: int) -> None:
        self.put_yesterday_morning = self.put_today_morning = 0
        self.got_yesterday_morning = self.got_today_morning = 0
        self._day = _local_day(now_ms)

    def roll(self, now_ms: int, put: int, got: int) -> None:
        """Keep the sums when a local day begins."""
        day = _local_day(now_ms)
        if day <= self._day:
            return
        self._day = day
        self.put_yesterday_morning, self.put_today_morning = self.put_today_morning, put
        self.got_yesterday_morning, self.got_today_morning = self.got_today_morning, got


class PutTimes:
    """How long appends took in the last whole minute: their distribution and its percentiles. `roll` is due each
    second.

    The store counts its appends in thirteen classes of time since the start; the counts are compared once a minute.
    Percentiles are interpolated inside a class, which is finer below 1 ms and coarser above than in the official
    broker. Mirrors the put times of `StoreStatsService`.
    """

    def __init__(self, now_ms: int) -> None:
        self._minute_start_ms = now_ms
        self._before = [0] * len(_CLASS_ENDS_MS)
        self.counts = [0] * len(_CLASS_ENDS_MS)
        """Appends of the last whole minute by class; all 0 in the first minute."""

    def roll(self, now_ms: int, counts: Sequence[int]) -> None:
        """Close the minute if it is over. `counts` are the store's counts since the start."""
        if 0 <= now_ms - self._minute_start_ms < _MINUTE_MS:
            return
        self._minute_start_ms = now_ms
        self.counts = [now - before for now, before in zip(counts, self._before, strict=True)]
        self._before = list(counts)

    def percentile_ms(self, share: float) -> float:
        """The time that `share` (0 to 1) of the last whole minute's appends did not exceed; 0 without appends."""
        wanted = int(sum(self.counts) * share)
        passed = lower_ms = 0
        for end_ms, count in zip(_CLASS_ENDS_MS, self.counts, strict=True):
            if wanted <= passed + count:
                return lower_ms + ((end_ms - lower_ms) * (wanted - passed) / count if count else 0.0)
            passed += count
            lower_ms = end_ms
        return float(lower_ms)


def window_of(sums: deque[_Sum], *, in_bytes: bool, with_calls: bool) -> BrokerStatsItem:
    if not sums:
        return BrokerStatsItem()
    first, last = sums[0], sums[-1]
    field = 3 if in_bytes else 2
    total = last[field] - first[field]
    calls = last[1] - first[1] if with_calls else 0
    elapsed_ms = last[0] - first[0]
    return BrokerStatsItem(
        sum=total,
        tps=total * 1000.0 / elapsed_ms if elapsed_ms > 0 else 0.0,
        avgpt=total / calls if calls > 0 else 0.0,
    )


def sum_of(left: Traffic, right: Traffic) -> Traffic:
    """The sum of two series whose snapshots were taken at the same times."""
    both = Traffic()
    both.count = left.count + right.count
    for sums, of_left, of_right in zip(both.windows, left.windows, right.windows, strict=True):
        pairs = zip(of_left, of_right, strict=True)
        sums.extend((a[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]) for a, b in pairs)
    return both


def _local_day(now_ms: int) -> int:
    return datetime.fromtimestamp(now_ms / 1000).toordinal()


_NO_LATENCY: Final = Traffic()
"""The latencies of every queue, always 0: the loop iteration that reads a request also answers it."""


class Statistics:
    def __init__(
        self, config: BrokerConfig, clock: Clock, store: MessageStore, topics: TopicTable, groups: GroupTable
    ) -> None:
        now_ms = clock.now_ms()
        self._config = config
        self._clock = clock
        self._store = store
        self._topics = topics
        self._groups = groups
        self._puts: dict[str, Traffic] = {}
        self._gets: dict[tuple[str, str], Traffic] = {}
        self._events: dict[tuple[str, str], Traffic] = {}
        self._acks: dict[tuple[str, str], tuple[Traffic, Traffic]] = {}
        """The events of acks, by topic and group: acks come often."""
        self._user_puts, self._system_puts = Traffic(), Traffic()
        self._user_gets, self._system_gets = Traffic(), Traffic()
        self._last_window_ms = [now_ms] * len(WINDOW_STEPS_MS)
        self._sampled_ms = now_ms
        self.put_times = PutTimes(now_ms)
        self.throughput = Throughput()
        self.day_totals = DayTotals(now_ms)

    # -- called by the send and pull paths

    def count_put(
        self, topic: str, count: int, size_bytes: int, queue_id: int = -1, *, sends: int = 1
    ) -> None:
        """Sends stored `count` messages of `size_bytes` in `topic` (delayed ones: in a queue of the schedule topic)."""
        traffic = self._puts.get(topic) or self._new_put(topic)
        traffic.add(count, size_bytes, sends)
        if topic == SCHEDULE_TOPIC:
            self._event("QUEUE_PUT", f"{topic}@{queue_id}").add(count, size_bytes, sends)

    def message_got(self, topic: str, group: str, count: int, size_bytes: int) -> None:
        """One read delivered `count` messages of `size_bytes` to a consumer of `group`."""
        traffic = self._gets.get((topic, group)) or self._new_get(topic, group)
        traffic.add(count, size_bytes)

    def puts(self) -> list[tuple[str, Traffic]]:
        """What was stored in each topic since the start."""
        return sorted(self._puts.items())

    def gets(self) -> list[tuple[tuple[str, str], Traffic]]:
        """What each group read of each topic since the start."""
        return sorted(self._gets.items())

    # -- other events

    def count_sent_back(
        self, group: str, origin_topic: str, size_bytes: int, delay_queue_id: int | None
    ) -> None:
        """A consumer sent a message back (36): it is stored for its retry, in the schedule topic if it is delayed."""
        self._event("SNDBCK_PUT_NUMS", f"{origin_topic}@{group}").add(1, 0)
        if delay_queue_id is not None:
            (self._puts.get(SCHEDULE_TOPIC) or self._new_put(SCHEDULE_TOPIC)).add(1, size_bytes)
            self._event("QUEUE_PUT", f"{SCHEDULE_TOPIC}@{delay_queue_id}").add(1, size_bytes)

    def count_pop(self, topic: str, group: str) -> None:
        """A pop delivered messages of one queue and stored a checkpoint."""
        self._event("GROUP_CK_NUMS", f"{topic}@{group}").add(1, 0)
        self._event("BROKER_CK_NUMS", self._config.broker_cluster_name).add(1, 0)

    def count_acks(self, topic: str, group: str, count: int) -> None:
        """`count` popped messages were acknowledged. Only existing topics and groups are counted."""
        if topic in self._topics and group in self._groups:
            both = self._acks.get((topic, group))
            if both is None:
                both = self._acks[topic, group] = (
                    self._event("GROUP_ACK_NUMS", f"{topic}@{group}"),
                    self._event("BROKER_ACK_NUMS", self._config.broker_cluster_name),
                )
            for traffic in both:
                traffic.calls += 1
                traffic.count += count

    def dead_letter(self, owner: str | None, group: str, origin_topic: str | None) -> None:
        """A message sent back became a dead letter. `owner` is the request's field of that name (5.x)."""
        key = f"{_java_text(owner)}@{_java_text(origin_topic)}@{group}@SEND_BACK_TO_DLQ"
        self._event("SNDBCK2DLQ_TIMES", key).add(1, 0)

    def count_delayed_delivery(self, topic: str, delay_queue_id: int, size_bytes: int) -> None:
        """A delayed message was stored in its real topic: counts as read from the schedule topic and as sent."""
        self._event("QUEUE_GET", f"{SCHEDULE_TOPIC}@{delay_queue_id}@{SCHEDULE_CONSUMER}").add(1, size_bytes)
        key = (SCHEDULE_TOPIC, SCHEDULE_CONSUMER)
        read = self._gets.get(key)
        if read is None:
            read = self._gets[key] = Traffic()  # not delivered to a client: part of no total
        read.add(1, size_bytes)
        self.count_put(topic, 1, size_bytes)

    def forget(self, topics: Set[str] = frozenset(), groups: Set[str] = frozenset()) -> None:
        """Delete the series of topics and groups; the sums over all topics stay."""
        for topic in topics & self._puts.keys():
            del self._puts[topic]
        for key in [key for key in self._gets if key[0] in topics or key[1] in groups]:
            del self._gets[key]
        self._acks.clear()
        for event in list(self._events):
            if event[1].partition("@")[0] in topics or event[1].rpartition("@")[2] in groups:
                del self._events[event]

    # -- snapshots

    def sample(self) -> Generator[None]:
        """Take the snapshots that are due; call it every second. Yields after each series. If the clock is set back or
        ahead, a window only gets shorter."""
        now_ms, stored, reader = self._clock.now_ms(), self._store.statistics, self._store.reader
        totals = (stored.messages, reader.found_times, reader.missed_times, reader.transferred_messages)
        if self._clock.is_virtual:
            self._fill_gap(now_ms, totals)
            self._sampled_ms = now_ms
        self.throughput.snapshot(now_ms, *totals)
        self.put_times.roll(now_ms, [count for _, count in stored.distribution()])
        self.day_totals.roll(now_ms, self.put_total_now, self.got_total_now)
        for window, step_ms in enumerate(WINDOW_STEPS_MS):
            if 0 <= now_ms - self._last_window_ms[window] < step_ms:
                continue
            self._last_window_ms[window] = now_ms
            for traffic in list(self._all()):
                traffic.snapshot(window, step_ms, now_ms)
                yield

    def _fill_gap(self, now_ms: int, totals: Totals) -> None:
        """Take the snapshots of the seconds that virtual time has skipped: what was counted was counted before them."""
        self.throughput.fill_gap(self._sampled_ms, now_ms, totals)
        for window, step_ms in enumerate(WINDOW_STEPS_MS):
            since_ms = self._last_window_ms[window]
            steps = max((now_ms - since_ms) // step_ms, 0)
            for step in range(max(steps - MAX_SNAPSHOTS, 0) + 1, steps + 1):
                for traffic in self._all():
                    traffic.snapshot(window, step_ms, since_ms + step * step_ms)
            self._last_window_ms[window] = since_ms + steps * step_ms

    # -- answers

    def find(self, name: str, key: str) -> BrokerStatsData | None:
        """One series over the three windows, by its official name and key; `None` if nothing was counted yet.

        The key of a topic series is the topic, of a group series `topic@group`, of a BROKER_ series the cluster's name;
        the keys of latencies start with a queue id and an @.
        """
        traffic = self._traffic(name, key)
        if traffic is None:
            return None
        in_bytes, with_calls = name.endswith("_SIZE"), not name.startswith("BROKER_")
        minute, hour, day = (
            window_of(sums, in_bytes=in_bytes, with_calls=with_calls) for sums in traffic.windows
        )
        return BrokerStatsData(stats_minute=minute, stats_hour=hour, stats_day=day)

    @property
    def put_total_now(self) -> int:
        """The field msgPutTotalTodayNow of 28: all stored messages in 4.x, sends to user topics in 5.x."""
        return self._user_puts.count if self._config.is_5 else self._store.statistics.messages

    @property
    def got_total_now(self) -> int:
        """The field msgGetTotalTodayNow of 28."""
        return self._user_gets.count if self._config.is_5 else self._store.reader.transferred_messages

    # -- inside

    def _traffic(self, name: str, key: str) -> Traffic | None:
        match name:
            case "TOPIC_PUT_NUMS" | "TOPIC_PUT_SIZE":
                return self._puts.get(key)
            case "GROUP_GET_NUMS" | "GROUP_GET_SIZE":
                topic, _, group = key.partition("@")
                return self._gets.get((topic, group))
            case "GROUP_GET_LATENCY":
                _queue_id, _, rest = key.partition("@")
                topic, _, group = rest.partition("@")
                return _NO_LATENCY if (topic, group) in self._gets else None
            case "TOPIC_PUT_LATENCY" if self._config.is_5:
                _queue_id, _, topic = key.partition("@")
                return _NO_LATENCY if topic in self._puts else None
            case "QUEUE_PUT_NUMS" | "QUEUE_PUT_SIZE" | "QUEUE_GET_NUMS" | "QUEUE_GET_SIZE":
                return self._events.get((name[:9], key))
            case "SNDBCK_PUT_NUMS":
                return self._events.get((name, key))
        if self._config.is_5 and name in _EVENTS_OF_5:
            return self._events.get((name, key))
        return self._broker_traffic(name) if key == self._config.broker_cluster_name else None

    def _broker_traffic(self, name: str) -> Traffic | None:
        match name:
            case "BROKER_PUT_NUMS":
                traffic = sum_of(self._user_puts, self._system_puts)
            case "BROKER_GET_NUMS":
                traffic = sum_of(self._user_gets, self._system_gets)
            case "BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC" if self._config.is_5:
                traffic = self._user_puts
            case "BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC" if self._config.is_5:
                traffic = self._user_gets
            case _:
                return None
        return traffic if traffic.count else None

    def _new_put(self, topic: str) -> Traffic:
        is_system = self._topics.is_system_topic(topic)
        traffic = self._puts[topic] = Traffic(self._system_puts if is_system else self._user_puts)
        return traffic

    def _new_get(self, topic: str, group: str) -> Traffic:
        is_system = self._topics.is_system_topic(topic)
        traffic = self._gets[topic, group] = Traffic(self._system_gets if is_system else self._user_gets)
        return traffic

    def _event(self, name: str, key: str) -> Traffic:
        traffic = self._events.get((name, key))
        if traffic is None:
            traffic = Traffic()
            if len(self._events) < MAX_EVENTS and len(key) <= MAX_KEY_LENGTH:
                self._events[name, key] = traffic
        return traffic

    def _all(self) -> Iterator[Traffic]:
        yield from (self._user_puts, self._system_puts, self._user_gets, self._system_gets)
        for table in (self._puts, self._gets, self._events):
            yield from table.values()


def _java_text(value: str | None) -> str:
    return "null" if value is None else value
