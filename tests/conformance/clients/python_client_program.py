"""The Python client inside a server's namespace: one scenario a run, its findings as JSON on the last line.

    python python_client_program.py SCENARIO PREFIX [ARGUMENT ...]

`PREFIX` makes topics and groups unique. Names that begin with it are the scenario's own. Not a test: the tests that
run it are `test_python_client.py`, and those that send with it.
"""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pocketmq.client.delivery.listeners import RetryLater
from pocketmq.client.errors import ClientError, SendFailed
from pocketmq.client.hooks.acl import AclClientRPCHook
from pocketmq.client.hooks.hooks import Hook
from pocketmq.client.producing.producer import Producer
from pocketmq.client.producing.transaction import LocalTransactionState, TransactionProducer
from pocketmq.client.pulling.lite_pull_consumer import LitePullConsumer
from pocketmq.client.pulling.pull_consumer import PullConsumer
from pocketmq.client.push.push_consumer import PushConsumer
from pocketmq.client.values.message import MessageExt
from pocketmq.protocol.bodies.client import ConsumeFromWhere

NAMESRV_ADDR = "127.0.0.1:9876"
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
WAIT_SECONDS = 60.0
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
TIMEOUT_MS = 10_000

Found = dict[str, Any]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


async def create(topic: str) -> None:
    """Make the topic by sending one message to it, and wait until its own route is known."""
    async with Producer(f"{topic}_maker", namesrv_addr=NAMESRV_ADDR, send_msg_timeout=30_000) as producer:
        async with asyncio.timeout(WAIT_SECONDS):
            await until_it_works(lambda: producer.send(topic, b"first"))
            await until_it_works(lambda: producer.queues(topic))


async def until_it_works(call: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await call()
            return
        except ClientError:
            await asyncio.sleep(0.2)


async def send(prefix: str, topic: str, count: str) -> Found:
    """Send that many messages to a topic."""
    await create(topic)
    async with Producer(f"{prefix}_p", namesrv_addr=NAMESRV_ADDR, send_msg_timeout=10_000) as producer:
        results = [await producer.send(topic, b"%d" % n) for n in range(int(count))]
    return {"sent": [(result.queue.queue_id, result.queue_offset) for result in results]}


class Seen:
    """A listener that keeps what it gets."""

    def __init__(self) -> None:
        self.messages: list[MessageExt] = []

    async def __call__(self, message: MessageExt) -> None:
        self.messages.append(message)

    @property
    def bodies(self) -> list[str]:
        return [message.body.decode() for message in self.messages]


# -- traces


async def traced(prefix: str) -> Found:
    """What TracedExchange.java does: a plain, a tagged and a refused message, and two transactions, all traced."""
    topic = f"{prefix}_traced"
    seen = Seen()

    async def listener(message: MessageExt) -> None:
        await seen(message)
        if message.body == b"again" and message.reconsume_times == 0:
            raise RetryLater(delay_level=1)

    options: dict[str, Any] = {"enable_trace": True, "send_msg_timeout": TIMEOUT_MS}
    async with (
        Producer(f"{prefix}_p", namesrv_addr=NAMESRV_ADDR, **options) as p,
        _first_sent(p, topic),
        TransactionProducer(f"{prefix}_t", _unknown, namesrv_addr=NAMESRV_ADDR, **options) as t,
        PushConsumer(
            f"{prefix}_g",
            listener,
            namesrv_addr=NAMESRV_ADDR,
            enable_trace=True,
            subscription={topic: "*"},
            consume_from_where=FIRST,
        ),
    ):
        await p.send(topic, b"plain")
        await p.send(topic, b"tagged", tags="A", keys="k1 k2")
        await p.send(topic, b"again", keys="k3")
        await t.send_in_transaction(topic, b"commit", _committed, keys="k4")
        await t.send_in_transaction(topic, b"drop", _rolled_back)
        await until(lambda: seen.bodies.count("again") == 2 and "commit" in seen.bodies)
    return {}


@asynccontextmanager
async def _first_sent(producer: Producer, topic: str) -> AsyncIterator[None]:
    """Create the topic with one traced message."""
    await producer.send(topic, b"first")
    async with asyncio.timeout(60):
        while True:
            try:
                await producer.queues(topic)
                break
            except ClientError:
                await asyncio.sleep(0.1)
    yield


def _unknown(message: MessageExt) -> LocalTransactionState:
    return LocalTransactionState.UNKNOW


def _committed(message: object, arg: object) -> LocalTransactionState:
    return LocalTransactionState.COMMIT_MESSAGE


def _rolled_back(message: object, arg: object) -> LocalTransactionState:
    return LocalTransactionState.ROLLBACK_MESSAGE


async def traces_of(prefix: str) -> Found:
    """Every record of the trace topic that names a group or request of this prefix, and the keys of its message."""
    records: list[list[str]] = []
    keys: list[str] = []
    async with PullConsumer(f"{prefix}_reader", namesrv_addr=NAMESRV_ADDR) as puller:
        for queue in await puller.queues(TRACE_TOPIC):
            offset = await puller.min_offset(queue)
            while offset < await puller.max_offset(queue):
                result = await puller.pull(queue, offset)
                offset = result.next_offset
                for record in result.messages:
                    text = bytes(record.body).decode()
                    keys.append(bytes(record.record.properties).decode())
                    records += [line.split("\x01") for line in text.split("\x02") if prefix in line]
    return {"records": records, "keys": keys}


# -- signatures


async def signed(prefix: str, access_key: str, secret_key: str) -> Found:
    """Send and consume with the right key; with a wrong key or none, every request is refused."""
    topic = f"{prefix}_signed"
    hooks = [AclClientRPCHook(access_key, secret_key)]
    seen = Seen()
    await _send_until_stored(topic, hooks)
    async with PushConsumer(
        f"{prefix}_g",
        seen,
        namesrv_addr=NAMESRV_ADDR,
        hooks=hooks,
        subscription={topic: "*"},
        consume_from_where=FIRST,
    ):
        await until(lambda: seen.bodies)
    refused: list[object] = []
    for wrong in (
        [AclClientRPCHook(access_key, "wrong-secret")],
        [AclClientRPCHook("nobody", secret_key)],
        [],
    ):
        async with Producer(f"{prefix}_w", namesrv_addr=NAMESRV_ADDR, hooks=wrong) as producer:
            try:
                await producer.send(topic, b"must not arrive", queue_id=0, timeout_ms=TIMEOUT_MS)
            except SendFailed as failure:
                refused.append(failure.code)
            except ClientError as error:
                refused.append(type(error).__name__)
    return {"seen": seen.bodies, "refused": refused}


async def _send_until_stored(topic: str, hooks: list[Hook] | list[AclClientRPCHook]) -> None:
    async with Producer(f"{topic}_p", namesrv_addr=NAMESRV_ADDR, hooks=hooks) as producer:
        for _ in range(50):
            try:
                await producer.send(topic, b"signed", timeout_ms=TIMEOUT_MS)
                return
            except SendFailed:
                await asyncio.sleep(0.2)
    raise AssertionError("never stored")


# -- connections to the broker


async def by_way_of(prefix: str, way: str, *files: str) -> Found:
    """The same exchange over the VIP channel, over TLS, by an address server, with automatic batches."""
    topic = f"{prefix}_{way}"
    options: dict[str, Any] = {"namesrv_addr": NAMESRV_ADDR, **_ways(way, files)}
    if way != "tls_checked":  # that broker refuses other clients
        await create(topic)
    server = _address_server() if way == "address_server" else None
    if server is not None:
        options = {"namesrv_domain": f"127.0.0.1:{server.server_port}"}
    batches = way == "auto_batch"
    seen = Seen()
    try:
        async with (
            Producer(f"{prefix}_p", **options, auto_batch=batches, send_msg_timeout=TIMEOUT_MS) as producer,
            PushConsumer(
                f"{prefix}_g", seen, **options, subscription={topic: "*"}, consume_from_where=FIRST
            ) as consumer,
            LitePullConsumer(f"{prefix}_l", **options, consume_from_where=FIRST) as lite,
        ):
            results = await asyncio.gather(*(producer.send(topic, b"%d" % n, tags="t") for n in range(40)))
            await until(lambda: len(set(seen.bodies) - {"first"}) >= 40)
            lag = await consumer.lag()
            lite.subscribe(topic, "t")
            polled: list[MessageExt] = []
            async with asyncio.timeout(60):
                while len(polled) < 40:
                    polled += await lite.poll(1_000)
    finally:
        if server is not None:
            server.shutdown()
    return {
        "ids": len({result.message_id for result in results}),
        "places": len({(result.queue, result.queue_offset) for result in results}),
        "seen": len(set(seen.bodies) - {"first"}),
        "polled": len(polled),
        "queues": len(lag),
    }


def _ways(way: str, files: tuple[str, ...]) -> dict[str, Any]:
    if way == "tls_checked":
        trust, certificate, key = files
        return {
            "use_tls": True,
            "tls_test_mode_enable": False,
            "tls_client_auth_server": True,
            "tls_client_trust_cert_path": trust,
            "tls_client_cert_path": certificate,
            "tls_client_key_path": key,
        }
    return {
        "tls": {"use_tls": True},
        "vip": {"vip_channel_enabled": True},
        "heartbeat_v2": {"use_heartbeat_v2": True},
    }.get(way, {})


def _address_server() -> ThreadingHTTPServer:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/rocketmq/nsaddr" else 404)
            self.end_headers()
            self.wfile.write(NAMESRV_ADDR.encode() + b"\n")

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


SCENARIOS: dict[str, Callable[..., Awaitable[Found]]] = {
    scenario.__name__: scenario
    for scenario in (
        traced,
        traces_of,
        signed,
        by_way_of,
        send,
    )
}


async def main() -> None:
    name, *arguments = sys.argv[1:]
    print("FOUND " + json.dumps(await SCENARIOS[name](*arguments)), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
