"""The least a broker in Python can do: it cuts frames and answers each send from a template, and stores nothing.

    python -m bench.template_server

Not a broker: a send is not checked, every message is said to be at the same place, and every topic has the same route.
It is name server and broker on the official ports, for the official benchmark producer (binary headers). Its rate is
what the clients, the kernel and the event loop leave for a broker: the limit in `bench.limit`. Stopped by SIGTERM.
"""

import asyncio
import json
import signal
import struct
from typing import Final, cast

import uvloop
from pocketmq.protocol.languages import V5_5_0
from pocketmq.protocol.requests.send import SendMessageReply
from pocketmq.protocol.wire.command import RESPONSE_FLAG, ROCKETMQ, Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.protocol.wire.schema import to_fields

NAME_SERVER_PORT: Final = 9876
BROKER_PORT: Final = 10911
QUEUES: Final = 1024
SENDS: Final = frozenset((10, 310, 320))
ROUTE, TOPIC_STATS = 105, 202
PREFIX: Final = struct.Struct(">iIh")
"""Length, header form and length, and of a binary header the code."""
OPAQUE: Final = struct.Struct(">i")
OPAQUE_AT: Final = 8 + 5
"""After the two lengths come code, language and version of a binary header."""

ROUTE_BODY: Final = json.dumps(
    {
        "brokerDatas": [
            {
                "brokerAddrs": {"0": f"127.0.0.1:{BROKER_PORT}"},
                "brokerName": "broker-a",
                "cluster": "DefaultCluster",
            }
        ],
        "filterServerTable": {},
        "queueDatas": [
            {
                "brokerName": "broker-a",
                "perm": 6,
                "readQueueNums": QUEUES,
                "writeQueueNums": QUEUES,
                "topicSysFlag": 0,
            }
        ],
    }
).encode()


def answered_send() -> bytes:
    """The reply to every send, its opaque to be put in."""
    reply = SendMessageReply(
        msg_id="7F00000100002A9F0000000000000000",
        queue_id=0,
        queue_offset=0,
        msg_region="DefaultRegion",
        trace_on=True,
    )
    command = Command(0, 0, RESPONSE_FLAG, fields=to_fields(reply), version=V5_5_0, header_type=ROCKETMQ)
    return encode_frame(command)


class Connection(asyncio.Protocol):
    """Answers all frames of a read with one write."""

    answered = 0
    """Sends of all connections."""
    template = answered_send()

    def __init__(self) -> None:
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        data = self._rest + data if self._rest else data
        start, end, answers = 0, len(data), []
        head, tail = self.template[:OPAQUE_AT], self.template[OPAQUE_AT + 4 :]
        while end - start >= PREFIX.size:
            length, header, code = PREFIX.unpack_from(data, start)
            if end - start < 4 + length:
                break
            if header >> 24 == ROCKETMQ and code in SENDS:
                Connection.answered += 1
                at = start + OPAQUE_AT
                answers.append(b"%b%b%b" % (head, data[at : at + 4], tail))
            else:
                answers.extend(other(data[start : start + 4 + length]))
            start += 4 + length
        self._rest = data[start:]
        self._transport.write(b"".join(answers))


def other(frame: bytes) -> list[bytes]:
    """Answers to anything but a send: a route, how many sends were answered, or nothing but success."""
    answers = []
    for request in FrameCutter().feed(frame):
        if request.is_oneway or request.is_reply:
            continue
        body = {ROUTE: ROUTE_BODY, TOPIC_STATS: b'{"maxOffset":%d}' % Connection.answered}.get(request.code)
        reply = Command(
            0,
            request.opaque,
            RESPONSE_FLAG,
            fields={},
            body=body,
            version=V5_5_0,
            header_type=request.header_type,
        )
        answers.append(encode_frame(reply))
    return answers


async def serve() -> None:
    """Serve both ports until SIGTERM."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    servers = [
        await loop.create_server(Connection, "127.0.0.1", port) for port in (NAME_SERVER_PORT, BROKER_PORT)
    ]
    print(f"NAMESRV_ADDR=127.0.0.1:{NAME_SERVER_PORT}", flush=True)
    await ended.wait()
    for server in servers:
        server.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())
