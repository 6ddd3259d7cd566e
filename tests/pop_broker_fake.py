"""A name server and 5.x broker on one port, with the requests of a popping consumer: for tests of the client's pop.

It answers as 5.5.0 does; its lists record what tests check. Not a store: each message is delivered once, and again when
its `change_invisible_time` asks for it.
"""

import asyncio
from collections.abc import Callable
from typing import Self

from pocketmq.protocol.bodies.client import (
    MessageQueueAssignment,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
)
from pocketmq.protocol.bodies.pop import BatchAckMessageRequestBody
from pocketmq.protocol.bodies.routes import BrokerData, QueueData, TopicRouteData
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.protocol.message.record import Record, encode_record
from pocketmq.protocol.wire.command import RESPONSE_FLAG, Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame

POP_TIME_MS = 4_000_000_000_000
"""Far ahead: no test is slow enough for its messages to be due elsewhere."""


def record(
    topic: str, offset: int, body: bytes, *, queue_id: int = 0, tries: int = 0, tag: str = ""
) -> Record:
    """A stored message."""
    return Record(
        topic,
        queue_id,
        offset,
        offset * 100,
        body,
        encode_properties({"TAGS": tag, "UNIQ_KEY": body.decode()}),
        born_timestamp=1_000,
        born_host=pack_host("127.0.0.1", 1),
        store_host=pack_host("127.0.0.1", 2),
        reconsume_times=tries,
    )


class PopBroker:
    """`async with PopBroker() as broker`: its `address` is name server and broker."""

    def __init__(self) -> None:
        self.mode = "POP"
        self.is_old = False
        """A broker of 5.0, which knows no batches of acks."""
        self.ready: list[list[Record]] = []
        """What the next pops bring, pop by pop."""
        self.pop_code = 0
        self.pops: list[dict[str, str]] = []
        self.acks: list[dict[str, str]] = []
        self.batch_acks: list[BatchAckMessageRequestBody] = []
        self.changes: list[dict[str, str]] = []
        self.assignments_asked: list[QueryAssignmentRequestBody] = []
        self.pop_time_ms = POP_TIME_MS
        self._held: list[Callable[[], None]] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        await self._server.wait_closed()

    def bring(self, *records: Record) -> None:
        """The next pop returns these."""
        self.ready.append(list(records))
        held, self._held = self._held, []
        for again in held:
            again()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        cutter = FrameCutter()
        while data := await reader.read(65536):
            for asked in cutter.feed(data):
                self._answer(asked, writer)

    def _answer(self, asked: Command, writer: asyncio.StreamWriter) -> None:
        fields = asked.fields or {}
        body, code, header = None, 0, None
        match asked.code:
            case 105:
                body = self._route().encode()
            case 400:
                self.assignments_asked.append(QueryAssignmentRequestBody.decode(asked.body))
                body = self._assignment(self.assignments_asked[-1].topic or "").encode()
            case 200050:
                if self.pop_code == 0 and not self.ready:
                    self._held.append(lambda: self._answer(asked, writer))
                    return
                self.pops.append(fields)
                code, header, body = self._pop()
            case 200051:
                self.acks.append(fields)
            case 200151 if self.is_old:
                code = 3
            case 200151:
                self.batch_acks.append(BatchAckMessageRequestBody.decode(asked.body))
            case 200053:
                self.changes.append(fields)
        if not asked.is_oneway and not writer.is_closing():
            writer.write(encode_frame(Command(code, asked.opaque, RESPONSE_FLAG, None, header, body)))

    def _pop(self) -> tuple[int, dict[str, str] | None, bytes | None]:
        if self.pop_code:
            code, self.pop_code = self.pop_code, 0
            return code, None, None
        records = self.ready.pop(0)
        spans: dict[tuple[str, int], list[int]] = {}
        for one in records:
            retry = "0" if not one.topic.startswith("%RETRY%") else "2" if "+" in one.topic else "1"
            spans.setdefault((retry, one.queue_id), []).append(one.queue_offset)
        header = {
            "popTime": str(self.pop_time_ms),
            "invisibleTime": "60000",
            "reviveQid": "3",
            "restNum": "0",
            "startOffsetInfo": ";".join(
                f"{retry} {queue} {span[0]}" for (retry, queue), span in spans.items()
            ),
            "msgOffsetInfo": ";".join(
                f"{retry} {queue} {','.join(map(str, span))}" for (retry, queue), span in spans.items()
            ),
        }
        return 0, header, b"".join(map(encode_record, records))

    def _route(self) -> TopicRouteData:
        return TopicRouteData(
            queue_datas=[QueueData(broker_name="b", read_queue_nums=2, write_queue_nums=2, perm=6)],
            broker_datas=[BrokerData(cluster="c", broker_name="b", broker_addrs={0: self.address})],
        )

    def _assignment(self, topic: str) -> QueryAssignmentResponseBody:
        pops = self.mode == "POP" and not topic.startswith("%RETRY%")
        queue_ids = (-1,) if pops else (0, 1)
        return QueryAssignmentResponseBody(
            message_queue_assignments=[
                MessageQueueAssignment(MessageQueue(topic, "b", queue_id), "POP" if pops else "PULL")
                for queue_id in queue_ids
            ]
        )
