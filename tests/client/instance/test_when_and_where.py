"""A client works from its start to its shutdown, in the event loop and thread that started it; else it raises."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import (
    AdminClient,
    ClientClosed,
    Message,
    Producer,
    PullConsumer,
    PushConsumer,
    Requester,
)
from pocketmq.client.instance.client import Client
from pocketmq.client.producing.transaction import LocalTransactionState, TransactionProducer
from pocketmq.client.pulling.lite_pull_consumer import LitePullConsumer
from pocketmq.protocol.message.message_queue import MessageQueue

from client_waits import Seen, send
from waiting import until

LONG = 30.0
QUEUE = MessageQueue("T", "broker-a", 0)
COMMIT = LocalTransactionState.COMMIT_MESSAGE
Use = Callable[[Any], object]

CLIENTS: dict[str, Callable[..., Client]] = {
    "producer": lambda **options: Producer("p", **options),
    "requester": lambda **options: Requester("q", **options),
    "transactions": lambda **options: TransactionProducer("t", lambda _: COMMIT, **options),
    "listening": lambda **options: PushConsumer("g", Seen(), subscription={"T": "*"}, **options),
    "iterated": lambda **options: PushConsumer("i", subscription={"T": "*"}, **options),
    "lite": lambda **options: LitePullConsumer("l", **options),
    "pull": lambda **options: PullConsumer("r", **options),
    "admin": AdminClient,
}
USES: dict[str, list[Use]] = {
    "producer": [
        lambda one: one.send("T", b"x"),
        lambda one: one.send_nowait("T", b"x"),
        lambda one: one.send_oneway("T", b"x"),
        lambda one: one.send_batch([Message("T", b"x"), Message("T", b"y")]),
        lambda one: one.queues("T"),
        lambda one: one.recall("T", "handle"),
    ],
    "requester": [lambda one: one.request("T", b"x")],
    "transactions": [lambda one: one.send_in_transaction("T", b"x", lambda *_: COMMIT)],
    "listening": [lambda one: one.lag(), lambda one: one.wait_assigned()],
    "iterated": [],
    "lite": [
        lambda one: one.poll(),
        lambda one: one.commit(),
        lambda one: one.committed(QUEUE),
        lambda one: one.seek(QUEUE, 0),
        lambda one: one.seek_to_begin(QUEUE),
        lambda one: one.seek_to_end(QUEUE),
        lambda one: one.pause([QUEUE]),
        lambda one: one.resume([QUEUE]),
        lambda one: one.offset_for_timestamp(QUEUE, 0),
        lambda one: one.queues("T"),
    ],
    "pull": [
        lambda one: one.queues("T"),
        lambda one: one.pull(QUEUE, 0),
        lambda one: one.max_offset(QUEUE),
        lambda one: one.min_offset(QUEUE),
        lambda one: one.search_offset(QUEUE, 0),
        lambda one: one.committed(QUEUE),
        lambda one: one.commit(QUEUE, 0),
        lambda one: one.broker_address(QUEUE),
    ],
    "admin": [lambda one: one.topics(), lambda one: one.cluster_info()],
}
BEFORE_TOO: dict[str, list[Use]] = {
    "listening": [
        lambda one: one.subscribe("U"),
        lambda one: one.unsubscribe("U"),
        lambda one: one.suspend(),
        lambda one: one.resume(),
    ],
    "lite": [
        lambda one: one.subscribe("T"),
        lambda one: one.unsubscribe("T"),
        lambda one: one.on_topic_queues_changed("T", lambda *_: None),
    ],
}
"""What may be done before the start as well."""
AFTERWARDS_TOO: dict[str, list[Use]] = {
    "listening": [lambda one: one.client_id],
    "iterated": [lambda one: one.fetch(1, 1), lambda one: one.__aiter__().__anext__()],
    "lite": [lambda one: one.client_id],
}
"""What is known after shutdown as well; to read what is not there any more is no error."""
LITE_BY_HAND: list[Use] = [lambda one: one.assign([QUEUE])]


async def raised(use: Use, client: Client) -> BaseException | None:
    try:
        result = use(client)
        if inspect.isawaitable(result):
            async with asyncio.timeout(LONG):
                await result
    except Exception as error:
        return error
    return None


async def raised_elsewhere(use: Use, client: Client) -> BaseException | None:
    """What it raises in the loop of another thread."""
    found: list[BaseException | None] = []

    def run() -> None:
        found.append(asyncio.run(raised(use, client)))

    thread = threading.Thread(target=run)
    thread.start()
    await asyncio.to_thread(thread.join, LONG)
    return found[0]


@pytest.mark.parametrize("kind", CLIENTS)
async def test_before_the_start_and_after_shutdown_every_call_raises(namesrv_addr: str, kind: str) -> None:
    await send(namesrv_addr, "T", 1)
    new = CLIENTS[kind](namesrv_addr=namesrv_addr)
    for use in (*USES[kind], *AFTERWARDS_TOO.get(kind, ())):
        assert isinstance(await raised(use, new), ClientClosed), inspect.getsource(use)
    for use in BEFORE_TOO.get(kind, ()):
        assert await raised(use, new) is None, inspect.getsource(use)
    over = CLIENTS[kind](namesrv_addr=namesrv_addr)
    await over.start()
    await over.shutdown()
    by_hand = LITE_BY_HAND if kind == "lite" else []
    for use in (*USES[kind], *BEFORE_TOO.get(kind, ()), *by_hand):
        assert isinstance(await raised(use, over), ClientClosed), inspect.getsource(use)
    for use in AFTERWARDS_TOO.get(kind, ()):
        assert isinstance(await raised(use, over), StopAsyncIteration | None), inspect.getsource(use)


@pytest.mark.parametrize("kind", CLIENTS)
async def test_in_another_loop_or_thread_every_call_raises_and_the_client_keeps_working(
    namesrv_addr: str, kind: str
) -> None:
    await send(namesrv_addr, "T", 1)
    async with CLIENTS[kind](namesrv_addr=namesrv_addr) as client:
        uses = [*USES[kind], *BEFORE_TOO.get(kind, ()), Client.shutdown]
        if kind == "iterated":
            uses += AFTERWARDS_TOO[kind]
        if kind == "lite":
            uses += LITE_BY_HAND
        for use in uses:
            error = await raised_elsewhere(use, client)
            assert isinstance(error, ClientClosed), (inspect.getsource(use), error)
            assert "in the event loop and thread that started it only" in str(error)
        if kind == "producer":
            await USES[kind][0](client)


async def test_shutdown_ends_a_wait_for_queues_with_an_error(node: Node) -> None:
    consumer = PushConsumer("g", Seen(), namesrv_addr=node.namesrv_address, subscription={"Nowhere": "*"})
    await consumer.start()
    consumer.suspend()
    waiting: Awaitable[None] = asyncio.ensure_future(consumer.wait_assigned(int(LONG * 1000)))
    await asyncio.sleep(0)
    await consumer.shutdown()
    with pytest.raises(ClientClosed):
        await waiting
    await until(lambda: node.broker.membership.consumers.find("g", consumer.client_id) is None)
