"""A running broker for administrators: its settings (25 changes them, 26 returns all of them) and its figures: all of
them (28), or one series over three windows (315).

The answer to 28 is a flat map of texts, with the official keys and value formats of the emulated line. Mirrors the same
parts of `AdminBrokerProcessor`, and `StoreStatsService.getRuntimeInfo`.
"""

import shutil
from collections.abc import Iterable
from decimal import Decimal
from functools import partial
from typing import Final

from pocketmq.protocol.bodies.broker import BrokerStatsData
from pocketmq.protocol.bodies.routes import KVTable
from pocketmq.protocol.languages import V4_9_7
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC
from pocketmq.protocol.requests.admin import (
    GetBrokerConfig,
    GetBrokerConfigReply,
    GetBrokerRuntimeInfo,
    UpdateBrokerConfig,
    ViewBrokerStatsData,
)
from pocketmq.protocol.text import fastjson
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import layout

from ..broker import Broker
from ..config import changes
from ..config import keys as config_keys
from ..errors import Refusal
from ..figures import TPS_SPANS_SECONDS
from ..network.dispatch import Answer, Call, handles

_POOL_CAPACITIES: Final = {
    "sendThreadPoolQueue": 10_000,
    "pullThreadPoolQueue": 100_000,
    "queryThreadPoolQueue": 20_000,
}
_POOL_CAPACITIES_5: Final = {"litePullThreadPoolQueue": 100_000}
_NO_LIMIT: Final = 2_147_483_647


@handles(UpdateBrokerConfig)
async def update_broker_config(broker: Broker, request: UpdateBrokerConfig, call: Call) -> Answer:
    """Body: properties text. The remark of the answer names the keys that take effect at the next start. A change of
    brokerPermission reaches the name servers before the answer is sent."""
    if not call.body:
        return Answer()
    config, state = broker.config, broker.state
    requested = changes.read_changes(call.body)
    changes.refuse_changes(config, requested, is_5=config.is_5)
    accepted = changes.apply_changes(config, requested, call.connection.peer)
    state.settings_version = state.settings_version.next_version(broker.clock.now_ms())
    # Only now: a client that hangs up ends this handler at the next wait.
    await state.tables.write_and_wait(
        "changed settings", partial(changes.write_changes, config.conf_file, accepted)
    )
    if "brokerPermission" in requested:
        await broker.cluster.registration.register_permission()
    keys = config_keys.keys(config_keys.program_of(config))
    waiting = sorted(name for name in accepted if "restart" in keys[name].traits)
    return Answer(remark=f"after a restart: {', '.join(waiting)}" if waiting else None)


@handles(GetBrokerConfig)
def get_broker_config(broker: Broker, request: GetBrokerConfig) -> Answer:
    """All official keys of the emulated line, one `key=value` a line."""
    version = broker.state.settings_version
    members: dict[str, int] = {"counter": version.counter}
    if broker.is_5:
        members["stateVersion"] = version.state_version
    members["timestamp"] = version.timestamp
    return Answer(
        reply=GetBrokerConfigReply(version=fastjson.dumps(members).decode()),
        body=config_keys.official_text(
            broker.config,
            is_5=broker.is_5,
            computed={"namesrvAddr": broker.cluster.registration.name_servers},
        ).encode(),
    )


@handles(GetBrokerRuntimeInfo)
def get_broker_runtime_info(broker: Broker, request: GetBrokerRuntimeInfo) -> KVTable:
    return KVTable(table=runtime_info(broker))


@handles(ViewBrokerStatsData)
def view_broker_stats_data(broker: Broker, request: ViewBrokerStatsData) -> BrokerStatsData:
    """Sum, throughput and average of one series over the last minute, hour and day."""
    data = broker.statistics.find(request.stats_name, request.stats_key)
    if data is None:
        remark = f"The stats <{request.stats_name}> <{request.stats_key}> not exist"
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
    return data


def runtime_info(broker: Broker) -> dict[str, str]:
    return (
        _throughput(broker)
        | _put_times(broker)
        | _disk(broker)
        | _delay_offsets(broker)
        | _broker(broker)
        | _pools(broker)
        | ({} if not broker.is_5 else _timer(broker))
    )


def _throughput(broker: Broker) -> dict[str, str]:
    stored, throughput = broker.store.statistics, broker.statistics.throughput
    found = [throughput.mean("found", span) for span in TPS_SPANS_SECONDS]
    missed = [throughput.mean("missed", span) for span in TPS_SPANS_SECONDS]
    transferred_key = "getTransferedTps" if not broker.is_5 else "getTransferredTps"
    return {
        "putMessageTimesTotal": str(stored.messages),
        "putMessageFailedTimes": str(stored.failed),
        "putMessageSizeTotal": str(stored.bytes),
        "putMessageAverageSize": java_double(stored.bytes / max(stored.messages, 1)),
        "putTps": _tps(throughput.mean("stored", span) for span in TPS_SPANS_SECONDS),
        "getFoundTps": _tps(found),
        "getMissTps": _tps(missed),
        "getTotalTps": _tps((hit or 0.0) + (miss or 0.0) for hit, miss in zip(found, missed, strict=True)),
        transferred_key: _tps(throughput.mean("transferred", span) for span in TPS_SPANS_SECONDS),
    }


def _put_times(broker: Broker) -> dict[str, str]:
    stored, put_times = broker.store.statistics, broker.statistics.put_times
    names = (name for name, _ in stored.distribution())
    return {
        "putMessageEntireTimeMax": str(stored.entire_time_max_ms),
        "putMessageDistributeTime": "".join(
            f"[{name}]:{count} " for name, count in zip(names, put_times.counts, strict=True)
        ),
        "putLatency99": f"{put_times.percentile_ms(0.99):.2f}",
        "putLatency999": f"{put_times.percentile_ms(0.999):.2f}",
        "getMessageEntireTimeMax": "0",  # reading only makes views of mapped memory
        "dispatchMaxBuffer": "0",  # always 0 in the official broker too
        "dispatchBehindBytes": str(broker.store.dispatch_behind_bytes),
        "pageCacheLockTimeMills": "0",  # one thread appends, so nothing waits for a lock
        "remainTransientStoreBufferNumbs": str(_NO_LIMIT),
        "remainHowManyDataToFlush": readable_bytes(broker.store.log_end - broker.store.flushed_position),
    }


def _disk(broker: Broker) -> dict[str, str]:
    config, store = broker.config.store, broker.store
    log_ratio, queue_ratio = (
        java_double(broker.retention.used_ratio(path))
        for path in (config.commit_log_dir, config.root / layout.CONSUME_QUEUE)
    )
    info = {
        "commitLogMinOffset": str(store.log_start if store.log_end else -1),
        "commitLogMaxOffset": str(store.log_end),
        "earliestMessageTimeStamp": str(store.earliest_log_time()),
        "commitLogDiskRatio": log_ratio,
        f"commitLogDiskRatio_{config.commit_log_dir}": log_ratio,
        "consumeQueueDiskRatio": queue_ratio,
    }
    if config.root.exists():
        disk = shutil.disk_usage(config.root)
        # 5.x includes the space reserved for root, 4.x does not.
        free = disk.free if not broker.is_5 else disk.total - disk.used
        capacity = f"Total : {readable_bytes(disk.total)}, Free : {readable_bytes(free)}."
        info["commitLogDirCapacity"] = capacity
    return info


def _delay_offsets(broker: Broker) -> dict[str, str]:
    """For each level with an offset: the offset of the next message to deliver, and the end of the level's queue."""
    delays, store = broker.delays, broker.store
    return {
        f"scheduleMessageOffset_{level}": f"{delays.offset(level)},{store.max_offset(SCHEDULE_TOPIC, level - 1)}"
        for level in delays.levels_with_offset()
    }


def _broker(broker: Broker) -> dict[str, str]:
    elapsed_seconds = max(broker.clock.now_ms() - broker.identity.boot_time_ms, 0) // 1000
    minutes, seconds = divmod(elapsed_seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    info = {
        "bootTimestamp": str(broker.identity.boot_time_ms),
        "runtime": f"[ {days:,} days, {hours} hours, {minutes} minutes, {seconds} seconds ]",
        "startAcceptSendRequestTimeStamp": str(broker.config.start_accept_send_request_time_stamp),
    }
    if not broker.is_5:
        info |= {"brokerVersion": str(V4_9_7), "brokerVersionDesc": "V4_9_7"}
    else:
        is_active = not broker.is_slave
        info |= {"brokerActive": "true" if is_active else "false", "brokerVersionDesc": "V5_5_0"}
    totals = broker.statistics.day_totals
    return info | {
        "msgPutTotalYesterdayMorning": str(totals.put_yesterday_morning),
        "msgPutTotalTodayMorning": str(totals.put_today_morning),
        "msgPutTotalTodayNow": str(broker.statistics.put_total_now),
        "msgGetTotalYesterdayMorning": str(totals.got_yesterday_morning),
        "msgGetTotalTodayMorning": str(totals.got_today_morning),
        "msgGetTotalTodayNow": str(broker.statistics.got_total_now),
    }


def _pools(broker: Broker) -> dict[str, str]:
    """Thread pools, whose queues are empty: the loop iteration that reads a request also handles it. Only answers about
    what is stored may wait, for the disk or for slaves."""
    capacities = dict(_POOL_CAPACITIES)
    if broker.is_5:
        capacities |= _POOL_CAPACITIES_5
        capacities["ackThreadPoolQueue"] = broker.config.ack_thread_pool_queue_capacity
    capacities["sendThreadPoolQueue"] = broker.config.send_thread_pool_queue_capacity
    capacities["pullThreadPoolQueue"] = broker.config.pull_thread_pool_queue_capacity
    info = {"EndTransactionQueueSize": "0", "EndTransactionThreadPoolQueueCapacity": "100000"}
    for pool, capacity in capacities.items():
        info[f"{pool}Size"] = "0"
        info[f"{pool}Capacity"] = str(capacity)
        info[f"{pool}HeadWaitTimeMills"] = "0"
    info["sendThreadPoolQueueSize"] = str(broker.sending.waiting_sends)
    if broker.config.is_5:
        info["ackThreadPoolQueueSize"] = str(broker.cluster.durable_log.waiting)
    return info


def _timer(broker: Broker) -> dict[str, str]:
    timed = broker.delayed.timer
    return {
        "timerReadBehind": str(timed.behind_ms // 1000),
        "timerOffsetBehind": str(timed.messages_behind),
        "timerCongestNum": str(timed.waiting),
        "timerEnqueueTps": java_double(timed.enqueue_tps),
        "timerDequeueTps": java_double(timed.dequeue_tps),
    }


def _tps(rates: Iterable[float | None]) -> str:
    """Three rates separated by blanks; a span that is not over yet is empty, as in the official broker."""
    return " ".join("" if rate is None else java_double(rate) for rate in rates)


def readable_bytes(count: int) -> str:
    """`920 B`, `79.3 GiB` (official MixAll.humanReadableByteCount)."""
    if count < 1024:
        return f"{count} B"
    size, units = float(count), "KMGTPE"
    for unit in units:
        size /= 1024
        if size < 1024 or unit == units[-1]:
            break
    return f"{size:.1f} {unit}iB"


def java_double(value: float) -> str:
    """`Double.toString`: plain from 0.001 up to ten million, else `1.0E7`."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{len(text) - 1 + int(exponent)}"
