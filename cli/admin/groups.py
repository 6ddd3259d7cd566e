"""`pocketmq admin`: groups and connected clients. The calls are those of `pocketmq.client.admin.groups`."""

from datetime import timedelta
from pathlib import Path

from click import echo
from pocketmq.client import AdminClient, ClientError, SubscriptionGroupConfig
from pocketmq.client.admin.calls import one_address
from pocketmq.client.admin.topics import parse_attributes
from pocketmq.client.clock import wall_ms
from pocketmq.protocol.bodies.client import ConsumeType
from pocketmq.protocol.bodies.client_state import ConsumerRunningInfo
from pocketmq.protocol.bodies.group_config import GroupRetryPolicy
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.languages import version_name
from pocketmq.protocol.text import fastjson

from .options import Options
from .texts import (
    file_name,
    group_members,
    group_text,
    queue_text,
    row,
    running_info_text,
)

SETTLED_MS = timedelta(minutes=2) // timedelta(milliseconds=1)
"""Members that joined less than this ago may not know each other's subscriptions yet."""
BLOCKED_MS = timedelta(minutes=1) // timedelta(milliseconds=1)


async def update_sub_group(admin: AdminClient, given: Options) -> None:
    config = SubscriptionGroupConfig(
        group_name=given.required("groupName"),
        consume_enable=given.boolean("consumeEnable", default=True),
        consume_from_min_enable=given.boolean("consumeFromMinEnable"),
        consume_broadcast_enable=given.boolean("consumeBroadcastEnable"),
        consume_message_orderly=given.boolean("consumeMessageOrderly"),
        retry_queue_nums=given.number("retryQueueNums", 1),
        retry_max_times=given.number("retryMaxTimes", 16),
        group_retry_policy=_retry_policy(given.text("groupRetryPolicy")),
        broker_id=given.number("brokerId", 0),
        which_broker_when_consume_slowly=given.number("whichBrokerWhenConsumeSlowly", 1),
        notify_consumer_ids_changed_enable=given.boolean("notifyConsumerIdsChanged", default=True),
        attributes=parse_attributes(given.text("attributes") or ""),
    )
    for broker in await admin.update_group(config, **given.place()):
        echo(f"create subscription group to {broker} success.")
    echo(group_text(config))


async def update_sub_group_list(admin: AdminClient, given: Options) -> None:
    configs = given.json_file("filename", list[SubscriptionGroupConfig])
    word = "group" if given.text("brokerAddr") is not None else "subscription group"
    for broker in await admin.update_groups(configs, **given.place()) if configs else ():
        echo(f"submit batch of {word} config to {broker} success, please check the result later.")


async def delete_sub_group(admin: AdminClient, given: Options) -> None:
    group, cluster = given.required("groupName"), given.text("clusterName")
    brokers = await admin.delete_group(group, **given.place(), remove_offset=given.boolean("removeOffset"))
    where = "" if given.text("brokerAddr") is not None else f" in cluster [{cluster}]"
    for broker in brokers:
        echo(f"delete subscription group [{group}] from broker [{broker}]{where} success.")


async def get_consumer_config(admin: AdminClient, given: Options) -> None:
    group = given.required("groupName")
    info = await admin.cluster_info()
    clusters = info.cluster_addr_table or {}
    for name, broker in sorted((info.broker_addr_table or {}).items()):
        address = one_address(broker)
        config = await admin.group_config(address, group) if address is not None else None
        if config is None:
            continue
        cluster = next((one for one, members in sorted(clusters.items()) if name in members), None)
        rule = "=" * 29
        echo(f"{rule}{cluster}:{name}{rule}")
        for member, value in group_members(config).items():
            echo(row("%-40s=  %s", member, value or ""))


async def set_consume_mode(admin: AdminClient, given: Options) -> None:
    topic, group, mode = given.required("topicName"), given.required("groupName"), given.required("mode")
    if mode not in ("PULL", "POP"):
        raise ClientError(f"-m (mode) is {mode!r:.60}, expected PULL or POP")
    count = given.number("popShareQueueNum", 0)
    for broker in await admin.set_consume_mode(topic, group, mode, count, **given.place()):
        echo(f"set consume mode to {broker} success.")
    echo(f"topic[{topic}] group[{group}] consume mode[{mode}] popShareQueueNum[{count}]")


# -- connected clients


async def consumer_connection(admin: AdminClient, given: Options) -> None:
    group = given.required("consumerGroup")
    found = await admin.consumer_connections(group, address=given.text("brokerAddr"))
    layout = "%-36s %-22s %-10s %s"
    echo(row(layout, "#ClientId", "#ClientAddr", "#Language", "#Version"))
    for one in sorted(found.connection_set, key=lambda one: one.client_id or ""):
        echo(row(layout, one.client_id, one.client_addr, one.language, version_name(one.version)))
    echo("\nBelow is subscription:")
    echo(row("%-20s %s", "#Topic", "#SubExpression"))
    for _, data in sorted(found.subscription_table.items()):
        echo(row("%-20s %s", data.topic, data.sub_string))
    echo()
    echo(f"ConsumeType: {found.consume_type}")
    echo(f"MessageModel: {found.message_model}")
    echo(f"ConsumeFromWhere: {found.consume_from_where}")


async def producer_connection(admin: AdminClient, given: Options) -> None:
    found = await admin.producer_connections(given.required("producerGroup"), given.required("topic"))
    members = sorted(found.connection_set, key=lambda one: one.client_id or "")
    for number, one in enumerate(members, 1):
        cells = (number, one.client_id, one.client_addr, one.language, version_name(one.version))
        echo(row("%04d  %-32s %-22s %-8s %s", *cells))


async def producer(admin: AdminClient, given: Options) -> None:
    for group, members in (await admin.producers(given.required("broker"))).items():
        if not members:
            echo(f"producer group ({group}) instances are empty")
        for one in members:
            echo(
                f"producer group ({group}) instance : clientId={one.client_id},remoteIP={one.remote_ip}, "
                f"language={one.language}, version={one.version}, "
                f"lastUpdateTimestamp={one.last_update_timestamp}"
            )


async def consumer_status(admin: AdminClient, given: Options) -> None:
    """Writes what each member reports to a file, in a folder named by the present time."""
    group, jstack = given.required("consumerGroup"), given.flag("jstack")
    found = await admin.consumer_connections(group, address=given.text("brokerAddr"))
    client_id = given.text("clientId")
    if client_id is not None:
        info = await admin.consumer_running_info(group, client_id, jstack=jstack)
        echo(running_info_text(info), nl=False)
        return
    layout = "%-10s %-40s %-20s %s"
    echo(row(layout, "#Index", "#ClientId", "#Version", "#ConsumerRunningInfoFile"))
    folder = Path(str(wall_ms()))
    infos: dict[str, ConsumerRunningInfo] = {}
    for one in sorted(found.connection_set, key=lambda one: one.client_id or ""):
        member = one.client_id or ""
        try:
            infos[member] = await admin.consumer_running_info(group, member, jstack=jstack)
        except ClientError as error:
            echo(f"pocketmq: {member}: {error}", err=True)
            continue
        folder.mkdir(exist_ok=True)
        file = folder / file_name(member)
        file.write_text(running_info_text(infos[member]), encoding="utf-8")
        echo(row("%-10d %-40s %-20s %s", len(infos), member, version_name(one.version), str(file)))
    if infos:
        _show_analysis(infos)


def _show_analysis(infos: dict[str, ConsumerRunningInfo]) -> None:
    """Whether the members' subscriptions agree, and which of their queues make no progress."""
    if not _has_one_subscription(infos):
        echo("\n\nWARN: Different subscription in the same group of consumer!!!", nl=False)
        return
    echo("\n\nSame subscription in the same group of consumer", nl=False)
    echo("\n\nRebalance OK")
    for client_id, info in infos.items():
        for line in _stuck_queues(client_id, info):
            echo(line)


def _has_one_subscription(infos: dict[str, ConsumerRunningInfo]) -> bool:
    first = next(iter(infos.values()))
    started_ms = int(first.properties.get("PROP_CONSUMER_START_TIMESTAMP") or 0)
    if not _is_push(first) or wall_ms() - started_ms <= SETTLED_MS:
        return True
    wanted = [{(one.topic, one.sub_string) for one in info.subscription_set} for info in infos.values()]
    return all(one == wanted[0] for one in wanted)


def _is_push(info: ConsumerRunningInfo) -> bool:
    return info.properties.get("PROP_CONSUME_TYPE") == ConsumeType.CONSUME_PASSIVELY


def _stuck_queues(client_id: str, info: ConsumerRunningInfo) -> list[str]:
    """Queues that have waited long for a lock, an unlock or the listener (ConsumerRunningInfo.analyzeProcessQueue)."""
    if not _is_push(info):
        return []
    lines = []
    is_orderly = (info.properties.get("PROP_CONSUMEORDERLY") or "").lower() == "true"
    for queue, state in sorted(info.mq_table.items()):
        place = f"{client_id} {queue_text(queue)}"
        if not is_orderly:
            quiet_ms = wall_ms() - state.last_consume_timestamp
            if quiet_ms > BLOCKED_MS and state.cached_msg_count > 0:
                lines.append(f"{place} can't consume for a while, maybe blocked, {quiet_ms}ms")
        elif not state.locked:
            lines.append(f"{place} can't lock for a while, {wall_ms() - state.last_lock_timestamp}ms")
        elif state.droped and state.try_unlock_times > 0:
            lines.append(f"{place} unlock {state.try_unlock_times} times, still failed")
    return lines


def _retry_policy(text: str | None) -> GroupRetryPolicy:
    if text is None:
        return GroupRetryPolicy()
    try:
        return fastjson.decode(text, GroupRetryPolicy)
    except BodyError as error:
        raise ClientError(f"-p (groupRetryPolicy): {error}") from error
