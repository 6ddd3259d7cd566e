"""`pocketmq admin`: groups and connected clients. The calls are those of `pocketmq.client.admin.groups`."""

from click import echo
from pocketmq.client import AdminClient, ClientError, SubscriptionGroupConfig
from pocketmq.client.admin.calls import one_address
from pocketmq.client.admin.topics import parse_attributes
from pocketmq.protocol.bodies.group_config import GroupRetryPolicy
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.languages import version_name
from pocketmq.protocol.text import fastjson

from .options import Options
from .texts import group_members, members_text, row


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
    echo(f"SubscriptionGroupConfig{{{members_text(group_members(config))}}}")


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
            echo(row("%-40s=  %s", member, "" if value is None else value))


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


def _retry_policy(text: str | None) -> GroupRetryPolicy:
    if text is None:
        return GroupRetryPolicy()
    try:
        return fastjson.decode(text, GroupRetryPolicy)
    except BodyError as error:
        raise ClientError(f"-p (groupRetryPolicy): {error}") from error
