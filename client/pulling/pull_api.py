"""One pull from one queue, and the questions about a queue's offsets: requests without a policy of their own.

`PullApi` finds the broker to read from, remembers which one it suggests for the next pull, and filters tags once more,
because a broker compares their hashes only. When to pull is `push/pull_loop.py`. Mirrors `PullAPIWrapper` and the
offset
calls of `MQAdminImpl`.
"""

from typing import TYPE_CHECKING, Final

from pocketmq.protocol.bodies.client import SubscriptionData, is_tag_type
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.flags import PULL_COMMIT_OFFSET, PULL_LITE_PULL_MESSAGE
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.offset import (
    GetEarliestMsgStoreTime,
    GetMaxOffset,
    GetMinOffset,
    SearchOffsetByTimestamp,
)
from pocketmq.protocol.requests.pull import LitePullMessage, PullMessage, PullMessageReply
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..connections.connection import Connection
from ..connections.route import MASTER_ID
from ..errors import NotReachable, RequestRefused, UnreadableReply
from ..hooks.hooks import FilterMessageContext, Hooks
from ..values.message import MessageExt, decode_messages
from ..values.results import PullResult, PullStatus, pull_status

if TYPE_CHECKING:
    from ..instance.instance import ClientInstance

OFFSET_TIMEOUT_SECONDS: Final = 6.0


class PullApi:
    """For one group of one client instance."""

    def __init__(
        self, instance: "ClientInstance", group: str, hooks: Hooks | None = None, *, unit_mode: bool = False
    ) -> None:
        self._instance = instance
        self._group = group
        self._hooks = hooks if hooks is not None and hooks.filter else None
        self._unit_mode = unit_mode
        self._suggested: dict[MessageQueue, int] = {}
        self._without_lite: set[str] = set()

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        subscription: SubscriptionData,
        sends_expression: bool,
        sys_flag: int,
        max_count: int,
        max_bytes: int | None = None,
        commit_offset: int = 0,
        suspend_ms: int = 0,
        timeout_ms: int,
        sub_version: int = 0,
    ) -> PullResult:
        """Pull once. `RequestRefused` for any code that is no PullStatus, `NotReachable`, `RouteNotFound`."""
        broker_id = self._suggested.get(queue, MASTER_ID)
        address, is_slave = await self._instance.routes.find_reader(queue, broker_id)
        if is_slave:
            sys_flag &= ~PULL_COMMIT_OFFSET  # offsets belong to the master
        is_lite = sys_flag & PULL_LITE_PULL_MESSAGE and address not in self._without_lite
        kind = LitePullMessage if is_lite else PullMessage
        request = kind(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=max_count,
            sys_flag=sys_flag,
            commit_offset=commit_offset,
            suspend_timeout_millis=suspend_ms,
            subscription=subscription.sub_string if sends_expression else None,
            sub_version=sub_version,
            expression_type=subscription.expression_type,
            max_msg_bytes=max_bytes,
            broker_name=queue.broker_name,
        )
        connection = await self._instance.connections.get(address)
        command = await connection.post(request, timeout_seconds=timeout_ms / 1000)
        status = pull_status(command.code)
        if status is None:
            if command.code == ResponseCode.GO_AWAY:
                self._instance.connections.leave(connection)
                raise NotReachable(f"{address} is about to stop")
            if is_lite and command.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                self._without_lite.add(address)  # a 4.9 broker: it takes the ordinary pull with the lite bit
            raise RequestRefused(command.code, command.remark or "", request.name)
        reply = Connection.read_fields(PullMessageReply, command, request.name)
        self._suggested[queue] = reply.suggest_which_broker_id
        messages: list[MessageExt] = []
        if status is PullStatus.FOUND:
            if command.body is None:  # going on at the next offset would pass over what was found
                raise UnreadableReply(f"{address} found messages of {queue} and sent none")
            settings = self._instance.settings
            try:
                messages = decode_messages(
                    command.body,
                    queue.broker_name,
                    min_offset=reply.min_offset,
                    max_offset=reply.max_offset,
                    reads_body=settings.decode_read_body,
                    inflates=settings.decode_decompress_body,
                )
            except ProtocolError as error:
                raise UnreadableReply(f"the messages of {queue} from {address}: {error}") from error
            messages = only_wanted(messages, subscription)
            if self._hooks is not None and messages:
                context = FilterMessageContext(self._group, messages, queue, self._unit_mode)
                messages = self._hooks.filter_messages(context)
        return PullResult(status, messages, reply.next_begin_offset, reply.min_offset, reply.max_offset)

    def forget(self, queue: MessageQueue) -> None:
        """Drop what is remembered of a queue."""
        self._suggested.pop(queue, None)

    async def max_offset(self, queue: MessageQueue) -> int:
        """One past the last message, as the master knows it."""
        request = GetMaxOffset(topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker_name)
        address = await self._instance.routes.find_master(queue)
        return (
            await self._instance.connections.call(address, request, timeout_seconds=OFFSET_TIMEOUT_SECONDS)
        ).offset

    async def min_offset(self, queue: MessageQueue) -> int:
        """The first message still there."""
        request = GetMinOffset(topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker_name)
        address = await self._instance.routes.find_master(queue)
        return (
            await self._instance.connections.call(address, request, timeout_seconds=OFFSET_TIMEOUT_SECONDS)
        ).offset

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The first message stored at or after a time, the end where there is none (4.9 brokers: the nearest)."""
        request = SearchOffsetByTimestamp(
            topic=queue.topic,
            queue_id=queue.queue_id,
            timestamp=timestamp_ms,
            boundary_type="LOWER",
            broker_name=queue.broker_name,
        )
        address = await self._instance.routes.find_master(queue)
        return (
            await self._instance.connections.call(address, request, timeout_seconds=OFFSET_TIMEOUT_SECONDS)
        ).offset

    async def earliest_store_time(self, queue: MessageQueue) -> int:
        """When the oldest message was stored, epoch ms; -1 for an empty queue."""
        request = GetEarliestMsgStoreTime(
            topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker_name
        )
        address = await self._instance.routes.find_master(queue)
        return (
            await self._instance.connections.call(address, request, timeout_seconds=OFFSET_TIMEOUT_SECONDS)
        ).timestamp


def only_wanted(messages: list[MessageExt], subscription: SubscriptionData) -> list[MessageExt]:
    """The messages whose tag is subscribed to: two tags of one hash look alike to the broker."""
    if not subscription.tags_set or not is_tag_type(subscription.expression_type):
        return messages
    return [message for message in messages if message.tags in subscription.tags_set]
