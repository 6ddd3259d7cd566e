"""`pocketmq admin`: topics. The calls are those of `pocketmq.client.admin.topics`."""

from click import echo
from pocketmq.client import AdminClient, ClientError, TopicConfig
from pocketmq.client.admin.topics import name_of_master, order_conf_of, parse_attributes
from pocketmq.protocol.message import flags
from pocketmq.protocol.message.topics import is_dlq_topic, is_retry_topic
from pocketmq.protocol.text import fastjson

from .options import Options
from .texts import java, row, time_text, topic_text

DEFAULT_QUEUES = 8
ROUTE_ROW = "%-45s %-32s %-50s %-10s %-11s %-5s"
ROUTE_WIDTH = 158


async def update_topic(admin: AdminClient, given: Options) -> None:
    unit = flags.TOPIC_UNIT if given.boolean("unit") else 0
    unit_sub = flags.TOPIC_UNIT_SUB if given.boolean("hasUnitSub") else 0
    config = TopicConfig(
        topic_name=given.required("topic"),
        read_queue_nums=given.number("readQueueNums", DEFAULT_QUEUES),
        write_queue_nums=given.number("writeQueueNums", DEFAULT_QUEUES),
        perm=given.number("perm", flags.PERM_READ | flags.PERM_WRITE),
        order=given.boolean("order"),
        topic_sys_flag=unit | unit_sub,
        attributes=parse_attributes(given.text("attributes") or ""),
    )
    brokers = await admin.update_topic(config, **given.place())
    address = given.text("brokerAddr")
    if address is not None:
        if config.order:
            conf = order_conf_of({await admin.broker_name_at(address): config.write_queue_nums})
            await admin.update_order_conf(config.name, conf)
            echo(f"set broker orderConf. isOrder={java(config.order)}, orderConf=[{conf}]")
        echo(f"create topic to {address} success.")
    else:
        for broker in brokers:
            echo(f"create topic to {broker} success.")
        if config.order:
            members = await admin.cluster_brokers(given.required("clusterName"))
            conf = order_conf_of({one.broker_name or "": config.write_queue_nums for one in members})
            await admin.set_order_conf(config.name, conf)
            echo(f"set cluster orderConf. isOrder={java(config.order)}, orderConf=[{conf}]")
    echo(topic_text(config))


async def delete_topic(admin: AdminClient, given: Options) -> None:
    topic, cluster = given.required("topic"), given.required("clusterName")
    await admin.delete_topic(topic, cluster)
    echo(f"delete topic [{topic}] from cluster [{cluster}] success.")
    echo(f"delete topic [{topic}] from NameServer success.")


async def update_topic_perm(admin: AdminClient, given: Options) -> None:
    topic, perm = given.required("topic"), given.number("perm", 0)
    route = await admin.topic_route(topic)
    address = given.text("brokerAddr")
    first = route.queue_datas[0] if route.queue_datas else None
    old = first.perm if first is not None else 0
    if address is not None:
        name = name_of_master(route, address)
        old = next((queues.perm for queues in route.queue_datas if queues.broker_name == name), old)
        if old == perm:
            echo("new perm equals to the old one!")
            return
    for broker in await admin.set_topic_perm(topic, perm, **given.place()):
        echo(f"update topic perm from {old} to {perm} in {broker} success.")
    if address is not None and first is not None:
        config = TopicConfig(
            topic_name=topic,
            read_queue_nums=first.read_queue_nums,
            write_queue_nums=first.write_queue_nums,
            topic_sys_flag=first.topic_sys_flag,
            perm=perm,
        )
        echo(f"{topic_text(config)}.")


async def topic_route(admin: AdminClient, given: Options) -> None:
    route = await admin.topic_route(given.required("topic"))
    if not given.flag("list"):
        echo(fastjson.dumps(route, pretty=True).decode())
        return
    head = ("#ClusterName", "#BrokerName", "#BrokerAddrs", "#ReadQueue", "#WriteQueue", "#Perm")
    echo(row(ROUTE_ROW, *head))
    table = {queues.broker_name: queues for queues in route.queue_datas}
    reads = writes = 0
    for broker in route.broker_datas:
        queues = table.get(broker.broker_name)
        if queues is None:
            continue
        reads += queues.read_queue_nums
        writes += queues.write_queue_nums
        numbers = (queues.read_queue_nums, queues.write_queue_nums, queues.perm)
        echo(row(ROUTE_ROW, broker.cluster, broker.broker_name, broker.broker_addrs, *numbers))
    echo("-" * ROUTE_WIDTH)
    echo(row(ROUTE_ROW, "Total:", len(table), "", reads, writes, ""))


async def topic_status(admin: AdminClient, given: Options) -> None:
    table = await admin.topic_status(given.required("topic"), route_topic=given.text("cluster"))
    head = ("#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated")
    echo(row("%-32s  %-4s  %-20s  %-20s    %s", *head))
    for queue, offset in sorted(table.offset_table.items()):
        last = time_text(offset.last_update_timestamp) if offset.last_update_timestamp > 0 else ""
        place = (queue.broker_name[:32], queue.queue_id)
        echo(row("%-32s  %-4d  %-20d  %-20d    %s", *place, offset.min_offset, offset.max_offset, last))
    echo()
    echo(f"Topic Put TPS: {0.0 if given.text('cluster') is None else table.topic_put_tps}")


async def topic_cluster_list(admin: AdminClient, given: Options) -> None:
    for cluster in await admin.clusters_of_topic(given.required("topic")):
        echo(cluster)


async def topic_list(admin: AdminClient, given: Options) -> None:
    topics = await admin.topics()
    if not given.flag("clusterModel"):
        for topic in topics:
            echo(topic)
        return
    echo(row("%-20s  %-48s  %-48s", "#Cluster Name", "#Topic", "#Consumer Group"))
    for topic in topics:
        if is_retry_topic(topic) or is_dlq_topic(topic):
            continue
        try:
            clusters = await admin.clusters_of_topic(topic)
            groups = await admin.groups_of_topic(topic)
        except ClientError:
            clusters, groups = [], []
        for group in groups or [""]:
            echo(row("%-20s  %-64s  %-64s", "".join(clusters[:1])[:20], topic[:64], group[:64]))
