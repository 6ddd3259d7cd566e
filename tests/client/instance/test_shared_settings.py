"""Settings of the shared part: the VIP channel, heartbeats, what is decoded, and the one loop a client belongs to."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import uvloop
from pocketmq.broker.node import Node
from pocketmq.client.hooks.rpc_hooks import RPCHook
from pocketmq.client.instance.instance_config import instance_config
from pocketmq.client.offsets.offset_store import OffsetMemory
from pocketmq.client.producing.producer import Producer
from pocketmq.client.pulling.lite_pull_consumer import LitePullConsumer
from pocketmq.client.push.push_consumer import PushConsumer
from pocketmq.protocol.bodies.client import HeartbeatData
from pocketmq.protocol.message.compression import decompress
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.protocol.wire.command import Command, RawBody
from pocketmq.protocol.wire.schema import Request

from client_waits import Seen, consuming, make_node, send
from ports import fixed_port
from waiting import until


class Asked(RPCHook):
    """Keeps which request went where, and the heartbeats with their answers."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.heartbeats: list[HeartbeatData] = []
        self.answers: list[dict[str, str]] = []

    def before_request(
        self, address: str, request: Request[Any], fields: dict[str, str], body: RawBody | None
    ) -> None:
        self.sent.append((request.name, address))
        if isinstance(request, HeartBeat):
            self.heartbeats.append(HeartbeatData.decode(body))

    def after_response(self, address: str, request: Request[Any], response: Command) -> None:
        if isinstance(request, HeartBeat):
            self.answers.append(response.fields or {})


async def test_the_vip_channel_is_for_what_the_official_client_sends_there(tmp_path: Path) -> None:
    node = make_node(tmp_path / "store", port=fixed_port())  # the fast port, two below, is free as well
    await node.start()
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
    await node.stop()
    host, _, port = main.rpartition(":")
    fast = f"{host}:{int(port) - 2}"
    by_address = {address: {name for name, to in asked.sent if to == address} for address in (main, fast)}
    to_fast = {"SEND_MESSAGE_V2", "GET_CONSUMER_LIST_BY_GROUP", "LOCK_BATCH_MQ", "QUERY_CONSUMER_OFFSET"}
    to_fast |= {"GET_MAX_OFFSET", "UPDATE_CONSUMER_OFFSET", "UNLOCK_BATCH_MQ"}
    assert to_fast <= by_address[fast]
    assert {"HEART_BEAT", "PULL_MESSAGE", "UNREGISTER_CLIENT"} <= by_address[main]
    assert by_address[main].isdisjoint(by_address[fast] - {"UNLOCK_BATCH_MQ"})


async def test_subscriptions_are_not_sent_again_to_a_broker_that_knows_the_fingerprint(node: Node) -> None:
    asked = Asked()
    await send(node.namesrv_address, "T", 1)
    async with consuming(node.namesrv_address, Seen(), use_heartbeat_v2=True, hooks=[asked]) as consumer:
        await until(lambda: len(asked.answers) >= 1 and consumer._running.routes.brokers.all_addresses())
        heartbeats = consumer._running.heartbeats
        for _ in range(3):
            await heartbeats.send()
        assert asked.heartbeats[-1].without_sub
        assert asked.heartbeats[-1].consumer_data_set[0].subscription_data_set == []
        assert asked.heartbeats[-1].heartbeat_fingerprint != 0
        assert asked.answers[-1]["IS_SUPPORT_HEART_BEAT_V2"] == "true"
        before = len(asked.heartbeats)
        consumer.subscribe("Other")
        await until(lambda: len(asked.answers) > before)
        changed = asked.heartbeats[-1]
        assert not changed.without_sub
        assert {one.topic for one in changed.consumer_data_set[0].subscription_data_set} >= {"T", "Other"}


async def test_bodies_may_be_left_compressed_or_out(namesrv_addr: str) -> None:
    body = b"long" * 5000
    async with Producer("p", namesrv_addr=namesrv_addr) as producer:
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
        options: dict[str, Any] = {"subscription": {"T": "*"}, "start": "first"}
        async with PushConsumer("g", orderly=True, namesrv_addr=namesrv_addr, **options) as consumer:
            return [message.body for message in await consumer.fetch(4, timeout_ms=30_000)]

    def run() -> list[bytes]:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(work())

    assert sorted(await asyncio.to_thread(run)) == [b"awaited", *[b"future"] * 3]
