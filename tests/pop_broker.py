"""A broker whose pops a test scripts: for tests of the client's pop.

Everything but pops, acknowledgements and assignments is the real broker's. Its lists record what tests check. Each
message is delivered once, and again when its `change_invisible_time` asks for it.
"""

import asyncio
import tempfile
from typing import Self

from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.node import Node
from pocketmq.client import MessageQueue, TopicConfig
from pocketmq.protocol.bodies.client import (
    MessageQueueAssignment,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
)
from pocketmq.protocol.bodies.pop import BatchAckMessageRequestBody
from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.protocol.message.record import Record, encode_record
from pocketmq.store.config import StoreConfig
from pocketmq.testing import DROP, LoggedRequest, Reply
from pocketmq.testing.faults.outcomes import Decision
from pocketmq.testing.faults.watched_node import WatchedNodes

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
    """`async with PopBroker() as broker`: the real name server and broker, whose pops a test scripts."""

    def __init__(self, port: int = 0) -> None:
        self.mode = "POP"
        self.is_old = False
        """A broker of 5.0, which knows no batches of acks."""
        self.answers_acks = True
        self.ready: list[list[Record]] = []
        """What the next pops bring, pop by pop."""
        self.pop_code = 0
        self.pops: list[dict[str, str]] = []
        self.acks: list[dict[str, str]] = []
        self.batch_acks: list[BatchAckMessageRequestBody] = []
        self.changes: list[dict[str, str]] = []
        self.assignments_asked: list[QueryAssignmentRequestBody] = []
        self.pop_time_ms = POP_TIME_MS
        self._brought = asyncio.Event()
        self._folder = tempfile.TemporaryDirectory(prefix="pocketmq-pop-")
        store = StoreConfig(store_path_root_dir=self._folder.name)
        self._node = Node(
            BrokerConfig(broker_name="b", listen_port=port, store=store), NameServerConfig(listen_port=0)
        )

    async def __aenter__(self) -> Self:
        await self._node.start()
        self.address = self._node.namesrv_address
        self._node.broker.topics.update(TopicConfig(topic_name="T", read_queue_nums=2, write_queue_nums=2))
        await self._node.broker.cluster.registration.wait_until_sent()
        watched = WatchedNodes(lambda function: function())
        watched.begin()
        watched.attach(self._node)
        scripted = {
            "QUERY_ASSIGNMENT": self._query_assignment,
            "POP_MESSAGE": self._pop_message,
            "ACK_MESSAGE": self._ack,
            "BATCH_ACK_MESSAGE": self._batch_ack,
            "CHANGE_MESSAGE_INVISIBLETIME": self._change,
        }
        for code, function in scripted.items():
            watched.faults.control(code, function, times=None)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._node.stop()
        self._folder.cleanup()

    def bring(self, *records: Record) -> None:
        """The next pop returns these."""
        self.ready.append(list(records))
        self._brought.set()

    # -- what the broker answers

    def _query_assignment(self, request: LoggedRequest) -> Reply:
        self.assignments_asked.append(QueryAssignmentRequestBody.decode(request.body))
        return Reply(body=self._assignment(self.assignments_asked[-1].topic or "").encode())

    async def _pop_message(self, request: LoggedRequest) -> Reply:
        while not self.pop_code and not self.ready:
            self._brought.clear()
            await self._brought.wait()
        self.pops.append(request.fields)
        return self._pop()

    def _ack(self, request: LoggedRequest) -> Reply | Decision:
        self.acks.append(request.fields)
        return Reply() if self.answers_acks else DROP

    def _batch_ack(self, request: LoggedRequest) -> Reply:
        if self.is_old:
            return Reply("REQUEST_CODE_NOT_SUPPORTED")
        self.batch_acks.append(BatchAckMessageRequestBody.decode(request.body))
        return Reply()

    def _change(self, request: LoggedRequest) -> Reply:
        self.changes.append(request.fields)
        return Reply()

    def _pop(self) -> Reply:
        if self.pop_code:
            code, self.pop_code = self.pop_code, 0
            return Reply(code)
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
        return Reply(fields=header, body=b"".join(map(encode_record, records)))

    def _assignment(self, topic: str) -> QueryAssignmentResponseBody:
        pops = self.mode == "POP" and not topic.startswith("%RETRY%")
        queue_ids = (-1,) if pops else (0, 1)
        return QueryAssignmentResponseBody(
            message_queue_assignments=[
                MessageQueueAssignment(MessageQueue(topic, "b", queue_id), "POP" if pops else "PULL")
                for queue_id in queue_ids
            ]
        )
