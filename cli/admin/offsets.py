"""`pocketmq admin`: progress and offsets. The calls are those of `pocketmq.client.admin.offsets`."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from click import echo
from pocketmq.client import AdminClient, ClientError, MessageQueue, RequestRefused
from pocketmq.client.admin.offsets import AT_END, RollbackStats
from pocketmq.protocol.bodies.client import ConsumeType
from pocketmq.protocol.bodies.client_state import ConsumerConnection
from pocketmq.protocol.bodies.offsets import ConsumeStats
from pocketmq.protocol.languages import version_name
from pocketmq.protocol.message.topics import group_of_retry_topic, is_retry_topic
from pocketmq.protocol.wire.response_codes import ResponseCode

from .options import Options
from .texts import java, row, second_text


async def consumer_progress(admin: AdminClient, given: Options) -> None:
    group = given.text("groupName")
    if group is None:
        await _show_groups(admin)
        return
    topic, cluster = given.text("topicName"), given.text("cluster")
    stats = await admin.consume_stats(group, topic, route_topic=cluster)
    holders = await admin.queue_holders(group) if given.boolean("showClientIP") else None
    extra, ip = ("", []) if holders is None else ("%-20s ", ["#Client IP"])
    head = ["#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", *ip, "#Diff", "#Inflight"]
    echo(row(f"%-64s  %-32s  %-4s  %-20s  %-20s  {extra}%-20s %-20s%s", *head, "#LastTime"))
    for queue, place in stats.offset_table.items():
        if holders is not None:
            ip = [holders.get(queue, ["N/A"])[-1].partition("@")[0]]
        cells = [*_place(queue), place.broker_offset, place.consumer_offset, *ip]
        diff = place.broker_offset - place.consumer_offset
        inflight = place.pull_offset - place.consumer_offset
        last = second_text(place.last_timestamp) if place.last_timestamp else "N/A"
        layout = f"%-64s  %-32s  %-4d  %-20d  %-20d  {extra}%-20d %-20d %s"
        echo(row(layout, *cells, diff, inflight, last))
    echo()
    echo(row("Consume TPS: %.2f", stats.consume_tps))
    echo(f"Consume Diff Total: {stats.total_diff}")
    echo(f"Consume Inflight Total: {stats.total_inflight_diff}")


async def clone_group_offset(admin: AdminClient, given: Options) -> None:
    src, dest, topic = given.required("srcGroup"), given.required("destGroup"), given.required("topic")
    await admin.clone_offsets(src, dest, topic)
    echo(f"clone group offset success. srcGroup[{src}], destGroup=[{dest}], topic[{topic}]", nl=False)


async def reset_offset_by_time(admin: AdminClient, given: Options) -> None:
    group, topic, cluster = given.required("group"), given.required("topic"), given.text("cluster")
    written, timestamp_ms = given.required("timestamp"), given.time_ms("timestamp", 0)
    is_force = given.boolean("force", default=True)
    address, queue_id = given.text("broker"), given.number("queue", -1)
    if address is not None and queue_id >= 0:
        await _reset_queue(admin, given, address, queue_id, timestamp_ms)
        return
    moved = await _reset(admin, group, topic, timestamp_ms, is_force=is_force, route_topic=cluster)
    by_broker = isinstance(moved, Mapping)
    echo(
        f"{'start reset' if by_broker else 'reset'} consumer offset by specified"
        f"{', group' if by_broker else ' consumerGroup'}[{group}], topic[{topic}], force[{java(is_force)}], "
        f"timestamp(string)[{written}], timestamp(long)[{timestamp_ms}]"
    )
    _show_moved(moved, "#resetOffset")


async def skip_accumulated_message(admin: AdminClient, given: Options) -> None:
    group, topic, cluster = given.required("group"), given.required("topic"), given.text("cluster")
    is_force = given.boolean("force", default=True)
    moved = await _reset(admin, group, topic, AT_END, is_force=is_force, route_topic=cluster)
    _show_moved(moved, "#rollbackOffset")


# -- parts


async def _show_groups(admin: AdminClient) -> None:
    """The progress of every group that has a retry topic."""
    head = ("#Group", "#Count", "#Version", "#Type", "#Model", "#TPS", "#Diff Total")
    echo(row("%-64s  %-6s  %-24s %-5s  %-14s  %-7s  %s", *head))
    for topic in await admin.topics():
        if not is_retry_topic(topic):
            continue
        group = group_of_retry_topic(topic)
        stats, connections = ConsumeStats(), ConsumerConnection()
        with suppress(ClientError):  # it has no offset yet
            stats = await admin.consume_stats(group)
        with suppress(ClientError):  # no member is online
            connections = await admin.consumer_connections(group)
        members = connections.connection_set
        version = version_name(min(one.version for one in members)) if members else "OFFLINE"
        is_pull = connections.consume_type == ConsumeType.CONSUME_ACTIVELY
        is_push = connections.consume_type == ConsumeType.CONSUME_PASSIVELY
        kind = ("PULL" if is_pull else "PUSH") if members else ""
        model = connections.message_model if members and is_push else ""
        cells = (group[:64], len(members), version, kind, model, int(stats.consume_tps), stats.total_diff)
        echo(row("%-64s  %-6d  %-24s %-5s  %-14s  %-7d  %d", *cells))


async def _reset_queue(
    admin: AdminClient, given: Options, address: str, queue_id: int, timestamp_ms: int
) -> None:
    group, topic = given.required("group"), given.required("topic")
    echo(
        f"start reset consumer offset by specified, group[{group}], topic[{topic}], queueId[{queue_id}], "
        f"broker[{address}], timestamp(string)[{given.required('timestamp')}], timestamp(long)[{timestamp_ms}]"
    )
    offset = given.number("offset", -1)
    if given.text("offset") is None:
        offset = await admin.search_offset_at(address, topic, queue_id, timestamp_ms)
    echo(f"reset consumer offset to {offset}")
    if offset > 0:
        await admin.reset_offset_of_queue(address, group, topic, queue_id, offset)


Moved = Mapping[MessageQueue, int] | Sequence[RollbackStats]
"""What a broker did by itself, or what this client did for a 4.9 broker without members of the group."""


async def _reset(
    admin: AdminClient, group: str, topic: str, to_ms: int, *, is_force: bool, route_topic: str | None
) -> Moved:
    try:
        return await admin.reset_offsets(group, topic, to_ms, is_force=is_force, route_topic=route_topic)
    except RequestRefused as refusal:
        if refusal.code != ResponseCode.CONSUMER_NOT_ONLINE:
            raise
    return await admin.reset_offsets_offline(group, topic, to_ms, is_force=is_force, route_topic=route_topic)


def _show_moved(moved: Moved, last: str) -> None:
    if isinstance(moved, Mapping):
        echo(row("%-40s  %-40s  %-40s", "#brokerName", "#queueId", "#offset"))
        for queue, offset in moved.items():
            echo(row("%-40s  %-40d  %-40d", queue.broker_name[:32], queue.queue_id, offset))
        return
    head = ("#brokerName", "#queueId", "#brokerOffset", "#consumerOffset", "#timestampOffset")
    echo(row("%-20s  %-20s  %-20s  %-20s  %-20s  %-20s", *head, last))
    for one in moved:
        cells = (one.broker_name[:32], one.queue_id, one.broker_offset, one.consumer_offset)
        layout = "%-20s  %-20d  %-20d  %-20d  %-20d  %-20d"
        echo(row(layout, *cells, one.timestamp_offset, one.rollback_offset))


def _place(queue: MessageQueue) -> tuple[object, ...]:
    return queue.topic[:64], queue.broker_name[:32], queue.queue_id
