"""Settings of the shared part: the VIP channel, heartbeats, what is decoded, and the one loop a client belongs to."""

import asyncio
from typing import Any

import pytest
import uvloop
from pocketmq.broker.node import Node
from pocketmq.client import LitePullConsumer, MessageQueue, Producer, PushConsumer
from pocketmq.client.instance.instance_config import instance_config
from pocketmq.client.offsets.offset_store import OffsetMemory
from pocketmq.protocol.bodies.client import HeartbeatData
from pocketmq.protocol.message.compression import decompress
from pocketmq.protocol.requests.membership import HeartBeat

from client_waits import Asked, Seen, consuming, send
from waiting import until


async def test_the_vip_channel_is_for_what_the_official_client_sends_there(node: Node) -> None:
    asked, seen = Asked(), Seen()
    options: dict[str, Any] = {
        "namesrv_addr": node.namesrv_address,
        "vip_channel_enabled": True,
        "hooks": [asked],
        "instance_name": "vip",
    }
    async with (
        Producer("p", **options) as producer,
        PushConsumer("g", seen, orderly=True, **options, subscription={"T": "*"}, start="first") as one,
    ):
        await producer.send("T", b"x")
        await producer.send_nowait("T", b"x")
        await producer.send_oneway("T", b"x")
        one.subscribe("T")
        await until(lambda: len(seen.messages) == 3, timeout=30)
        await one.lag()
        main = producer._running.routes.master("broker-a", main_port=True) or ""
    host, _, port = main.rpartition(":")
    fast = f"{host}:{int(port) - 2}"
    names = {address: {one.name for to, one in asked.requests if to == address} for address in (main, fast)}
    to_fast = {"SEND_MESSAGE_V2", "GET_CONSUMER_LIST_BY_GROUP", "LOCK_BATCH_MQ", "QUERY_CONSUMER_OFFSET"}
    to_fast |= {"GET_MAX_OFFSET", "UPDATE_CONSUMER_OFFSET", "UNLOCK_BATCH_MQ"}
    assert to_fast <= names[fast]
    assert {"HEART_BEAT", "PULL_MESSAGE", "UNREGISTER_CLIENT"} <= names[main]
    assert names[main].isdisjoint(names[fast] - {"UNLOCK_BATCH_MQ"})


async def test_subscriptions_are_not_sent_again_to_a_broker_that_knows_the_fingerprint(node: Node) -> None:
    asked = Asked()
    await send(node.namesrv_address, "T", 1)
    async with consuming(node.namesrv_address, Seen(), use_heartbeat_v2=True, hooks=[asked]) as consumer:
        heartbeats, brokers = consumer._running.heartbeats, consumer._running.routes.brokers
        await until(lambda: "HEART_BEAT" in asked.bodies and brokers.all_addresses())
        sent = asked.bodies["HEART_BEAT"]
        for _ in range(3):
            await heartbeats.send()
        last = HeartbeatData.decode(sent[-1])
        assert last.without_sub
        assert last.consumer_data_set[0].subscription_data_set == []
        assert last.heartbeat_fingerprint != 0
        answers = [answer.fields or {} for request, answer in asked.answers if isinstance(request, HeartBeat)]
        assert answers[-1]["IS_SUPPORT_HEART_BEAT_V2"] == "true"
        before = len(sent)
        consumer.subscribe("Other")
        await until(lambda: len(sent) > before)
        changed = HeartbeatData.decode(sent[-1])
        assert not changed.without_sub
        assert {one.topic for one in changed.consumer_data_set[0].subscription_data_set} >= {"T", "Other"}


async def test_bodies_may_be_left_compressed_or_out(namesrv_addr: str, producer: Producer) -> None:
    body = b"long" * 5000
    await producer.send("T", body)
    found = {}
    for name, options in {
        "all": {},
        "compressed": {"decode_decompress_body": False},
        "none": {"decode_read_body": False},
    }.items():
        seen = Seen()
        async with consuming(namesrv_addr, seen, group=name, **options):
            await until(lambda seen=seen: seen.messages)  # type: ignore[misc]
        found[name] = seen.messages[0]
    assert found["all"].body == body
    compressed = found["compressed"]
    assert len(compressed.body) < 1000
    assert bytes(decompress(compressed.body, compressed.record.sys_flag)) == body
    assert found["none"].body == b""
    assert found["none"].message_id == found["all"].message_id


async def test_lite_pull_requests_are_marked_as_a_stream(namesrv_addr: str) -> None:
    config = instance_config(LitePullConsumer("g", namesrv_addr=namesrv_addr).settings)
    assert config.client_id.endswith("@STREAM")
    fields: dict[str, str] = {}
    for hook in config.hooks:
        hook.before_request("", HeartBeat(), fields, None)
    assert fields == {"ReqT": "0"}
    assert instance_config(Producer("g", namesrv_addr=namesrv_addr).settings).hooks == ()


# -- one loop, one thread


class SlowToLoad(OffsetMemory):
    """Offsets whose loading ends when the test releases it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def load(self) -> None:
        self.asked.set()
        await self.go.wait()

    async def in_store(self, queue: MessageQueue) -> int:
        return 0

    async def persist(self, queue: MessageQueue) -> None: ...

    async def persist_all(self, queues: object) -> None: ...

    async def persist_last(self, queues: object) -> None: ...


async def test_an_instance_does_not_end_under_a_client_that_is_about_to_join_it(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 1)
    options: dict[str, Any] = {"namesrv_addr": namesrv_addr, "instance_name": "shared"}
    seen, offsets = Seen(), SlowToLoad()
    consumer = PushConsumer("g", seen, offset_store=offsets, subscription={"T": "*"}, **options)
    async with Producer("p", **options):
        joining = asyncio.create_task(consumer.start())
        await offsets.asked.wait()
    offsets.go.set()
    await joining
    await until(lambda: seen.messages)
    await consumer.shutdown()


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
async def test_a_client_works_in_every_event_loop(namesrv_addr: str, loop_factory: Any) -> None:
    async def work() -> list[bytes]:
        async with Producer("p", namesrv_addr=namesrv_addr) as producer:
            await producer.send("T", b"awaited")
            await asyncio.gather(*(producer.send_nowait("T", b"future") for _ in range(3)))
        async with consuming(namesrv_addr, orderly=True) as consumer:
            return [message.body for message in await consumer.fetch(4, timeout_ms=30_000)]

    def run() -> list[bytes]:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(work())

    assert sorted(await asyncio.to_thread(run)) == [b"awaited", *[b"future"] * 3]
