"""`pocketmq admin`: brokers, clusters and name servers. The calls are those of `AdminClient`."""

import asyncio
from collections.abc import Iterator, Sequence

from click import echo
from pocketmq.client import AdminClient, ClientError
from pocketmq.client.admin.brokers import TopicRates
from pocketmq.client.clock import wall_ms
from pocketmq.client.connections.route import MASTER_ID
from pocketmq.protocol.bodies.routes import ClusterInfo
from pocketmq.protocol.message.topics import is_dlq_topic, is_retry_topic

from .options import Options
from .texts import row

HOUR_MS = 3_600_000
BASE_HEAD = (
    *("#Cluster Name", "#Broker Name", "#BID", "#Addr", "#Version", "#InTPS(LOAD)", "#OutTPS(LOAD)"),
    *("#Timer(Progress)", "#PCWait(ms)", "#Hour", "#SPACE", "#ACTIVATED"),
)


async def cluster_list(admin: AdminClient, given: Options) -> None:
    """Runs once, or with an interval until interrupted."""
    interval = given.number("interval", 0)
    show = _show_more_stats if given.flag("moreStats") else _show_base_info
    while True:
        info = await admin.cluster_info()
        name = given.text("clusterName")
        await show(admin, info, [name] if name else sorted(info.cluster_addr_table or {}))
        if interval <= 0:
            return
        echo()
        await asyncio.sleep(interval)


async def broker_status(admin: AdminClient, given: Options) -> None:
    address = given.text("brokerAddr")
    if address is not None:
        for key, value in (await admin.broker_runtime(address)).items():
            echo(row("%-32s: %s", key, value))
        return
    for broker in await admin.broker_addresses(given.required("clusterName")):
        for key, value in (await admin.broker_runtime(broker)).items():
            echo(row("%-24s %-32s: %s", broker, key, value))


async def get_broker_config(admin: AdminClient, given: Options) -> None:
    address = given.text("brokerAddr")
    if address is not None:
        await _show_config(admin, f"============{address}============", address)
        return
    for broker in await admin.cluster_brokers(given.required("clusterName")):
        addresses = dict(sorted((broker.broker_addrs or {}).items()))
        master = addresses.pop(MASTER_ID, None)
        if master is None:
            echo("============Master: NO_MASTER============")
        else:
            await _show_config(admin, f"============Master: {master}============", master)
        for slave in addresses.values():
            head = f"============My Master: {master or 'NO_MASTER'}=====Slave: {slave}============"
            await _show_config(admin, head, slave)


async def update_broker_config(admin: AdminClient, given: Options) -> None:
    brokers = await admin.update_broker_config(
        {given.required("key"): given.required("value")},
        **given.place(),
        with_slaves=given.text("updateAllBroker") is not None,
    )
    for broker in brokers:
        echo(f"update broker config success, {broker}")


async def stats_all(admin: AdminClient, given: Options) -> None:
    head = ("#Topic", "#Consumer Group", "#Accumulation", "#InTPS", "#OutTPS", "#InMsg24Hour")
    echo(row("%-64s  %-64s %12s %11s %11s %14s %14s", *head, "#OutMsg24Hour"))
    wanted = given.text("topic")
    for topic in await admin.topics():
        if is_retry_topic(topic) or is_dlq_topic(topic) or (wanted and topic != wanted):
            continue
        try:
            rates = await admin.topic_rates(topic)
        except ClientError:
            continue
        for one in rates:
            _show_rates(one, only_active=given.flag("activeTopic"))


# -- parts


def _members(info: ClusterInfo, clusters: Sequence[str]) -> Iterator[tuple[str, str, int, str]]:
    """Cluster, broker name, broker id and address, sorted."""
    for cluster in clusters:
        for name in sorted((info.cluster_addr_table or {}).get(cluster, ())):
            broker = (info.broker_addr_table or {}).get(name)
            for broker_id, address in sorted((broker.broker_addrs or {}).items() if broker else ()):
                yield cluster, name, broker_id, address


async def _figures(admin: AdminClient, address: str) -> dict[str, str]:
    """An empty result for a broker that does not answer: it is listed anyway."""
    try:
        return await admin.broker_runtime(address)
    except ClientError as error:
        echo(f"pocketmq: {address}: {error}", err=True)
        return {}


async def _show_base_info(admin: AdminClient, info: ClusterInfo, clusters: Sequence[str]) -> None:
    layout = "%-22s  %-22s  %-4s  %-22s %-16s  %16s  %30s  %-22s  %-11s  %-12s  %-8s  %-10s"
    echo(row(layout, *BASE_HEAD))
    for cluster, name, broker_id, address in _members(info, clusters):
        table = await _figures(admin, address)
        echo(_base_row(cluster, name, broker_id, address, table))


def _base_row(cluster: str, name: str, broker_id: int, address: str, table: dict[str, str]) -> str:
    def queue(kind: str) -> str:
        size = table.get(f"{kind}ThreadPoolQueueSize", "N" if kind == "ack" else "")
        wait = table.get(f"{kind}ThreadPoolQueueHeadWaitTimeMills", "N" if kind == "ack" else "")
        return f"{size},{wait}ms"

    timer = (
        int(_figure(table, "timerReadBehind")),
        int(_figure(table, "timerOffsetBehind")),
        _figure(table, "timerCongestNum") / 10_000,
        _figure(table, "timerEnqueueTps"),
        _figure(table, "timerDequeueTps"),
    )
    earliest = _figure(table, "earliestMessageTimeStamp")
    hours = (wall_ms() - earliest) / HOUR_MS if table.get("earliestMessageTimeStamp") else 0.0
    cells = (
        *(cluster, name, broker_id, address, table.get("brokerVersionDesc", "")),
        row("%9.2f(%s)", _figure(table, "putTps"), queue("send")),
        row("%9.2f(%s|%s)", _figure(table, "getTransferredTps"), queue("pull"), queue("ack")),
        row("%d-%d(%.1fw, %.1f, %.1f)", *timer),
        table.get("pageCacheLockTimeMills", ""),
        row("%2.2f", hours),
        row("%.4f", _figure(table, "commitLogDiskRatio")),
        table.get("brokerActive") == "true",
    )
    layout = "%-22s  %-22s  %-4s  %-22s %-16s  %16s  %30s  %-22s  %11s  %-12s  %-8s  %10s"
    return row(layout, *cells)


def _figure(table: dict[str, str], name: str) -> float:
    """The number, or the first of several (rates over ten seconds, a minute, ten minutes); 0 if there is none."""
    words = (table.get(name) or "").split()
    try:
        return float(words[0]) if words else 0.0
    except ValueError:
        return 0.0


async def _show_more_stats(admin: AdminClient, info: ClusterInfo, clusters: Sequence[str]) -> None:
    head = ("#Cluster Name", "#Broker Name", "#InTotalYest", "#OutTotalYest", "#InTotalToday")
    echo(row("%-16s  %-32s %14s %14s %14s %14s", *head, "#OutTotalToday"))
    for cluster, name, _, address in _members(info, clusters):
        table = await _figures(admin, address)
        moments = ("YesterdayMorning", "TodayMorning", "TodayNow")
        totals = [int(_figure(table, f"msg{kind}Total{at}")) for at in moments for kind in ("Put", "Get")]
        counts = [later - earlier for earlier, later in zip(totals, totals[2:], strict=False)]
        echo(row("%-16s  %-32s %14d %14d %14d %14d", cluster, name, *counts))


async def _show_config(admin: AdminClient, head: str, address: str) -> None:
    echo(head)
    for key, value in sorted((await admin.broker_config(address)).items()):
        echo(row("%-50s=  %s", key, value))
    echo()


def _show_rates(one: TopicRates, *, only_active: bool) -> None:
    if only_active and one.in_24_hours <= 0 and one.out_24_hours <= 0:
        return
    if one.group is None:
        cells = (one.topic[:64], "", 0, one.in_tps, "", one.in_24_hours, "NO_CONSUMER")
        echo(row("%-64s  %-64s %12d %11.2f %11s %14d %14s", *cells))
    else:
        first = (one.topic[:64], one.group[:64], one.accumulation, one.in_tps, one.out_tps)
        echo(row("%-64s  %-64s %12d %11.2f %11.2f %14d %14d", *first, one.in_24_hours, one.out_24_hours))
