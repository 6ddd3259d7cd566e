"""What a gRPC call costs the broker's thread behind HTTP/2: from the bytes of a request to the bytes of the reply.

    python -m bench.grpc_path [--calls 20000] [--only TEXT] [--frames N]

Broker and endpoint are the real ones in this process; a call has a stream that keeps its replies. A row is the lower
quartile over slices of 400 calls (a receive: of 12 with 32 messages each, the time is that of a message; and of one
message each). Bodies of 1 KiB, as `grpc_calls.py` sends them. With `--frames`, sends and acks arrive as frames of
HTTP/2, N calls in a read. The kernel is not measured here.
"""

import asyncio
import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec
from pocketmq.broker.node import Node
from pocketmq.grpc_endpoint import messages
from pocketmq.grpc_endpoint.calls.rpc_call import Calls
from pocketmq.grpc_endpoint.endpoint import Endpoint, open_endpoint
from pocketmq.grpc_endpoint.http2.headers import RequestHead
from pocketmq.grpc_endpoint.messages import Resource
from pocketmq.grpc_endpoint.messages.proto import Message
from pocketmq.grpc_endpoint.messages.service import BY_REQUEST
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.offset_id import pack_host

from .frame import parsed, run, started_node
from .grpc_frames import FrameClient

TOPIC = "GrpcBench"
GROUP = "bench"
QUEUES = 8
BODY = bytes(1024)
SLICE_CALLS = 400
BATCH = 32
METADATA = {
    "x-mq-client-id": "host@1@0@bench",
    "x-mq-language": "JAVA",
    "x-mq-client-version": "5.2.0",
    "x-mq-protocol": "v2",
    "x-mq-date-time": "20260101T000000Z",
    "x-mq-request-id": "00000000-0000-0000-0000-000000000000",
    "x-mq-namespace": "",
}


class Owner:
    """The connection of all calls."""

    loop: asyncio.AbstractEventLoop
    peer = "127.0.0.1:40000"
    packed_host = pack_host("127.0.0.1", 40_000)
    closed = False

    def wrap_transport(self, wrap: Callable[[asyncio.Transport], asyncio.Transport]) -> None:
        """No transport is there."""

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class Stream:
    """The replies' side of a call."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.replies: list[bytes] = []
        self.ended: int | None = None

    def send_headers(self) -> None: ...

    def send_message(self, data: bytes) -> None:
        self.replies.append(data)

    def answer(self, data: bytes) -> None:
        self.send_message(data)
        self.finish(0, "")

    def answer_all(self, messages: Sequence[bytes]) -> None:
        self.replies += messages
        self.finish(0, "")

    def finish(self, status: int, text: str) -> None:
        self.ended = status


class Bench:
    """One endpoint, one client."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._calls: Calls = endpoint.calls
        self._port = endpoint.port
        self._port.limits = msgspec.structs.replace(
            self._port.limits, pass_seconds=3600
        )  # all of a read at once
        self._owner = Owner()
        self._owner.loop = asyncio.get_running_loop()
        self._number = 0

    async def feed_frames(self, request_type: type[Message], requests: Iterator[bytes], each: int) -> float:
        """This thread's microseconds per call, with HTTP/2; so many calls are in a read."""
        slices: list[float] = []
        path, client = BY_REQUEST[request_type].path, FrameClient(self._port)
        while len(some := list(islice(requests, SLICE_CALLS))) == SLICE_CALLS:
            reads = [client.calls(path, METADATA, some[at : at + each]) for at in range(0, SLICE_CALLS, each)]
            began_ns = time.thread_time_ns()
            for data in reads:
                client.read(data)
            slices.append((time.thread_time_ns() - began_ns) / 1000 / SLICE_CALLS)
            await asyncio.sleep(0)
            assert len(client.replies()) == SLICE_CALLS
        client.close()
        assert slices, "too few calls for one slice"
        return sorted(slices)[len(slices) // 4]

    def begin(self, request_type: type[Message], data: bytes) -> Stream:
        stream = Stream(self._owner)
        exchange = self._calls.opened(
            stream, RequestHead(BY_REQUEST[request_type].path, METADATA, 30.0, "identity")
        )
        assert exchange is not None
        exchange.on_message(data)
        exchange.on_half_close()
        return stream

    def telemetry(self) -> None:
        """The client becomes a consumer."""
        stream = Stream(self._owner)
        path = BY_REQUEST[messages.TelemetryCommand].path
        exchange = self._calls.opened(stream, RequestHead(path, METADATA, None, "identity"))
        assert exchange is not None
        entry = messages.SubscriptionEntry(topic=Resource(name=TOPIC))
        subscription = messages.Subscription(group=Resource(name=GROUP), subscriptions=[entry])
        settings = messages.Settings(
            client_type=messages.ClientType.SIMPLE_CONSUMER, subscription=subscription
        )
        exchange.on_message(messages.TelemetryCommand(settings=settings).SerializeToString())

    async def feed(
        self,
        request_type: type[Message],
        requests: Iterator[bytes],
        slice_calls: int = SLICE_CALLS,
        each: int = 1,
    ) -> tuple[float, list[bytes]]:
        """This thread's microseconds per message, and the replies."""
        slices: list[float] = []
        replies: list[bytes] = []
        while some := list(islice(requests, slice_calls)):
            began_ns = time.thread_time_ns()
            done = [self.begin(request_type, data) for data in some]
            spent_ns = time.thread_time_ns() - began_ns
            if len(some) == slice_calls:
                slices.append(spent_ns / 1000 / (slice_calls * each))
            assert all(stream.ended == 0 for stream in done)
            replies += [reply for stream in done for reply in stream.replies]
            await asyncio.sleep(0)
        assert slices, "too few calls for one slice"
        return sorted(slices)[len(slices) // 4], replies

    def send(self, keys: tuple[str, ...] = (), properties: dict[str, str] | None = None) -> bytes:
        self._number += 1
        system = messages.SystemProperties(
            keys=keys,
            message_id=f"01{os.getpid():012X}0000DEADBEEF{self._number:08X}",
            body_encoding=messages.Encoding.IDENTITY,
            message_type=messages.MessageType.NORMAL,
            born_timestamp=messages.timestamp_of(time.time_ns() // 1_000_000),
            born_host="bench-machine",
        )
        own = [{"key": name, "value": value} for name, value in (properties or {}).items()]
        message = messages.Message(
            topic=Resource(name=TOPIC), user_properties=own, system_properties=system, body=BODY
        )
        return messages.SendMessageRequest(messages=[message]).SerializeToString()

    def receive(self, batch_size: int = BATCH) -> bytes:
        return messages.ReceiveMessageRequest(
            group=Resource(name=GROUP),
            message_queue=messages.MessageQueue(
                topic=Resource(name=TOPIC), id=-1, broker=messages.Broker(name="broker-a")
            ),
            filter_expression=messages.FilterExpression(type=messages.FilterType.TAG, expression="*"),
            batch_size=batch_size,
            invisible_duration=messages.Duration(seconds=60),
            long_polling_timeout=messages.Duration(seconds=5),
        ).SerializeToString()


def acks(replies: list[bytes]) -> Iterator[bytes]:
    """An ack of each message received."""
    for reply in replies:
        received = messages.ReceiveMessageResponse.FromString(reply)
        if received.HasField("message"):
            system = received.message.system_properties
            entry = messages.AckMessageEntry(
                message_id=system.message_id, receipt_handle=system.receipt_handle
            )
            group, topic = Resource(name=GROUP), Resource(name=TOPIC)
            request = messages.AckMessageRequest(group=group, topic=topic, entries=[entry])
            yield request.SerializeToString()


async def measure(folder: Path, only: str, calls: int, frames: int) -> None:
    async with started_node(folder) as node, open_endpoint(node) as endpoint:
        await rows(node, Bench(endpoint), only, calls, frames)


async def rows(node: Node, bench: Bench, only: str, calls: int, frames: int) -> None:
    topic = TopicConfig(topic_name=TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
    node.broker.topics.update(topic)
    node.broker.groups.update(SubscriptionGroupConfig(group_name=GROUP))
    bench.telemetry()
    await asyncio.sleep(0.2)  # the tables are saved
    for _ in range(SLICE_CALLS):
        bench.begin(messages.SendMessageRequest, bench.send())
    gc.collect()
    gc.freeze()

    def show(name: str, us: float) -> None:
        print(f"{name:26} {us:6.2f} us", flush=True)

    async def measure(request_type: type[Message], requests: Iterator[bytes]) -> float:
        if frames:
            return await bench.feed_frames(request_type, requests, frames)
        return (await bench.feed(request_type, requests))[0]

    sends: dict[str, Callable[[], bytes]] = {
        "send": bench.send,
        "send, key and property": lambda: bench.send(("order-1",), {"colour": "red"}),
    }
    for name, make in sends.items():
        if only in name:
            made = (make() for _ in range(calls))
            show(name, await measure(messages.SendMessageRequest, made))
    if only in "receive ack":
        while True:
            missing = calls - sum(queue.max_offset for queue in node.broker.store.queues_of(TOPIC))
            if missing < SLICE_CALLS:
                break
            await bench.feed(messages.SendMessageRequest, (bench.send() for _ in range(missing)))
        receives = (bench.receive() for _ in range(calls // BATCH - QUEUES))
        us, replies = await bench.feed(messages.ReceiveMessageRequest, receives, SLICE_CALLS // BATCH, BATCH)
        show("receive", us)
        show("ack", await measure(messages.AckMessageRequest, acks(replies)))
        singles = 4 * SLICE_CALLS
        await bench.feed(messages.SendMessageRequest, (bench.send() for _ in range(singles)))
        receives = (bench.receive(1) for _ in range(singles))
        show("receive one message", (await bench.feed(messages.ReceiveMessageRequest, receives))[0])


def main() -> None:
    options = parsed(__doc__, calls=20_000, only="", frames=0)
    run(lambda folder: measure(folder, options.only, options.calls, options.frames))


if __name__ == "__main__":
    main()
