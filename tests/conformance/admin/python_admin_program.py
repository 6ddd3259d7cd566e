"""AdminClient inside a server's namespace: what an administrator does in a small shop, findings as JSON at the end.

    python python_admin_program.py PREFIX

`PREFIX` makes topics and groups unique. Not a test: the test that runs it is `test_admin_client.py`.
"""

import asyncio
import json
import sys
from typing import Any

from pocketmq.client.admin.client import AdminClient
from pocketmq.client.errors import ClientError, NotOnline, RequestRefused, RouteNotFound
from pocketmq.client.producing.producer import Producer
from pocketmq.client.push.push_consumer import PushConsumer
from pocketmq.client.values.message import MessageExt
from pocketmq.protocol.bodies.client import ConsumeFromWhere
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.message_queue import MessageQueue

NAMESRV_ADDR = "127.0.0.1:9876"
CLUSTER = "DefaultCluster"
WAIT_SECONDS = 60.0

Found = dict[str, Any]


async def until_it_says(question: Any, wanted: object) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            try:
                if await question() == wanted:
                    return
            except ClientError:
                pass  # not yet
            await asyncio.sleep(0.1)


def by_queue(offsets: dict[MessageQueue, int], topic: str) -> list[int]:
    return [offset for queue, offset in sorted(offsets.items()) if queue.topic == topic]


async def refusal(question: Any) -> str:
    """The kind of error, and a server's code."""
    try:
        await question
    except RequestRefused as error:
        return f"RequestRefused {error.code}"
    except ClientError as error:
        return type(error).__name__
    return "nothing"


async def topics_and_groups(admin: AdminClient, topic: str, group: str) -> Found:
    config = TopicConfig(topic_name=topic, read_queue_nums=2, write_queue_nums=2)
    await admin.update_topic(config, cluster=CLUSTER)
    (address,) = await admin.master_addresses(CLUSTER)
    for name in (group, f"{group}_copy", f"{group}_idle"):
        await admin.update_group(SubscriptionGroupConfig(group_name=name, retry_max_times=3), address=address)
    await admin.set_topic_perm(topic, 6, address=address)
    kept = (await admin.topic_configs(address))[topic]
    group_kept = await admin.group_config(address, group)
    return {
        "topic": [kept.read_queue_nums, kept.write_queue_nums, kept.perm],
        "group": group_kept.retry_max_times if group_kept is not None else None,
        "listed": topic in await admin.topics(),
        "clusters": await admin.clusters_of_topic(topic),
        "order": await admin.update_order_conf(topic, "broker-a:2"),
        "absent": [
            await refusal(admin.topic_route(f"{topic}_absent")),
            await refusal(admin.order_conf(f"{topic}_absent")),
            await refusal(admin.consume_stats(f"{group}_absent")),
            await refusal(admin.update_topic(config, cluster="absent")),
        ],
    }


async def messages(admin: AdminClient, topic: str) -> Found:
    queue = MessageQueue(topic, "broker-a", 0)
    async with Producer(f"{topic}_shop", namesrv_addr=NAMESRV_ADDR) as producer:
        sent = [
            await producer.send(
                topic, b"order %d" % number, tags="created", keys=f"order-{number}", queue=queue
            )
            for number in range(5)
        ]

    async def keyed() -> int:
        return len(await admin.messages_by_key(topic, "order-4"))

    await until_it_says(keyed, 1)
    one = await admin.message(topic, sent[2].message_id)
    same = await admin.message(topic, sent[2].offset_message_id)
    at = await admin.message_at(queue, 2)
    entries = await admin.consume_queue((await admin.master_addresses(CLUSTER))[0], topic, 0, 1, 2)
    read = [len(result.messages) async for result in admin.read(queue, 1, 5)]
    again = await admin.resend(topic, sent[2].message_id)
    return {
        "bodies": [one.body.decode(), same.body.decode(), at.body.decode() if at is not None else None],
        "read": read,
        "entries": len(entries.queue_data or ()),
        "kept_id": again.message_id == sent[2].message_id,
        "absent": [
            await refusal(admin.message(topic, "FF" * 16)),
            len(await admin.messages_by_key(topic, "absent")),
        ],
    }


async def progress(admin: AdminClient, topic: str, group: str) -> Found:
    seen: list[MessageExt] = []

    async def listener(message: MessageExt) -> None:
        seen.append(message)

    async with PushConsumer(
        group,
        listener,
        namesrv_addr=NAMESRV_ADDR,
        subscription={topic: "created"},
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        persist_consumer_offset_interval=500,
    ) as consumer:

        async def lag() -> int:
            return await admin.lag(group, topic) + 6 - len(seen)

        await until_it_says(lag, 0)
        (member,) = (await admin.consumer_connections(group)).connection_set
        info = await admin.consumer_running_info(group, consumer.client_id)
        result = await admin.consume_directly(group, consumer.client_id, topic, seen[0].message_id)
        (track,) = [one for one in await admin.message_track(seen[0]) if one.group == group]
        online: Found = {
            "member": member.client_id == consumer.client_id,
            "queues": sorted(queue.queue_id for queue in info.mq_table if queue.topic == topic),
            "directly": [result.consume_result, len(seen)],
            "track": track.track_type,
            "groups": group in await admin.groups_of_topic(topic),
        }

    async def offline() -> str:
        return await refusal(admin.consumer_connections(group))

    await until_it_says(offline, NotOnline.__name__)
    cloned = await admin.clone_offsets(group, f"{group}_copy", topic)
    skipped = await admin.skip_accumulated(group, topic)
    rolled = await admin.reset_offsets_offline(f"{group}_idle", topic, -1)
    return online | {
        "cloned": by_queue(cloned, topic),
        "skipped": by_queue(skipped, topic),
        "rolled": [one.rollback_offset for one in rolled],
    }


async def brokers(admin: AdminClient, prefix: str) -> Found:
    (address,) = await admin.broker_addresses(CLUSTER)
    await admin.update_broker_config({"flushDelayOffsetInterval": "9999"}, address=address)
    changed = (await admin.broker_config(address))["flushDelayOffsetInterval"]
    await admin.update_broker_config({"flushDelayOffsetInterval": "10000"}, cluster=CLUSTER)
    await admin.put_kv_config(prefix, "key", "value")
    values = await admin.kv_configs(prefix)
    await admin.delete_kv_config(prefix, "key")
    return {
        "changed": changed,
        "name": await admin.broker_name_at(address),
        "figures": int((await admin.broker_runtime(address))["msgPutTotalTodayNow"]) > 0,
        "namesrv": "orderMessageEnable" in (await admin.namesrv_config())[NAMESRV_ADDR],
        "values": values,
        "removed": await refusal(admin.kv_config(prefix, "key")),
    }


async def play(prefix: str) -> Found:
    topic, group = f"{prefix}_topic", f"{prefix}_group"
    async with AdminClient(namesrv_addr=NAMESRV_ADDR) as admin:
        found = {
            "topics and groups": await topics_and_groups(admin, topic, group),
            "messages": await messages(admin, topic),
            "progress": await progress(admin, topic, group),
            "brokers": await brokers(admin, prefix),
        }
        for name in (group, f"{group}_copy", f"{group}_idle"):
            await admin.delete_group(name, cluster=CLUSTER, remove_offset=True)
        await admin.delete_order_conf(topic)
        await admin.delete_topic(topic, CLUSTER)
        gone = await refusal(admin.topic_route(topic))
    return found | {"gone": gone == RouteNotFound.__name__}


if __name__ == "__main__":
    print("FOUND", json.dumps(asyncio.run(play(sys.argv[1]))))
