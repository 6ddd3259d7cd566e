"""One pull from one queue: a request without a policy of its own.

`PullApi` finds the broker to read from, remembers which one it suggests for the next pull, and filters tags once more,
because a broker compares only their hashes. When to pull is decided by its callers: `push/push_queues.py`,
`lite_pull_queues.py` and the user of `pull_consumer.py`. Mirrors `PullAPIWrapper`.
"""

from typing import Final

import msgspec
from pocketmq.protocol.bodies.client import SubscriptionData, is_tag_type
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.flags import PULL_COMMIT_OFFSET, PULL_LITE_PULL_MESSAGE, PULL_SUBSCRIPTION
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.pull import LitePullMessage, PullMessage, PullMessageReply
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..connections.connection import Connection
from ..connections.route import MASTER_ID
from ..errors import RequestRefused, UnreadableReply
from ..hooks.hooks import FilterMessageContext, Hooks
from ..instance.instance import ClientInstance
from ..values.message import MessageExt, decode_messages
from ..values.results import PULL_STATUS, PullResult, PullStatus

SHORT_PULL_TIMEOUT_MS: Final = 10_000
"""For a pull that the broker answers at once (official consumerPullTimeoutMillis)."""


class PullOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What to pull from a queue. Times in ms; `suspend_ms` is how long the broker may hold the pull."""

    offset: int
    subscription: SubscriptionData
    max_count: int
    sends_expression: bool = True
    sys_flag: int = PULL_SUBSCRIPTION
    timeout_ms: int = SHORT_PULL_TIMEOUT_MS
    max_bytes: int | None = None
    commit_offset: int = 0
    suspend_ms: int = 0
    sub_version: int = 0


class PullApi:
    """For one group of one client instance."""

    def __init__(
        self, instance: ClientInstance, group: str, hooks: Hooks | None = None, *, unit_mode: bool = False
    ) -> None:
        self._instance = instance
        self._group = group
        self._hooks = hooks if hooks is not None and hooks.filter else None
        self._unit_mode = unit_mode
        self._suggested: dict[MessageQueue, int] = {}
        """The broker id to read a queue from next."""
        self._without_lite: set[str] = set()
        """Brokers that do not know the lite pull: those of 4.9."""

    async def pull(self, queue: MessageQueue, order: PullOrder) -> PullResult:
        """Pull once. `RequestRefused` for any code that is not a PullStatus, `NotReachable`, `RouteNotFound`."""
        broker_id = self._suggested.get(queue, MASTER_ID)
        address, is_slave = await self._instance.routes.find_reader(queue, broker_id)
        request = self._request(queue, order, address, is_slave=is_slave)
        connections, seconds = self._instance.connections, order.timeout_ms / 1000
        command = await connections.exchange(address, request, timeout_seconds=seconds)
        status = PULL_STATUS.get(command.code)
        if status is None:
            is_lite = isinstance(request, LitePullMessage)
            if is_lite and command.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                self._without_lite.add(address)  # a 4.9 broker accepts the ordinary pull with the lite bit
                return await self.pull(queue, order)
            raise RequestRefused(command.code, command.remark or "", request.name)
        reply = Connection.read_fields(PullMessageReply, command, request.name)
        self._suggested[queue] = reply.suggest_which_broker_id
        messages: list[MessageExt] = []
        if status is PullStatus.FOUND:
            messages = self._read(queue, order.subscription, address, reply, command)
        return PullResult(status, messages, reply.next_begin_offset, reply.min_offset, reply.max_offset)

    def forget(self, queue: MessageQueue) -> None:
        """Read the queue from its master again."""
        self._suggested.pop(queue, None)

    def _request(
        self, queue: MessageQueue, order: PullOrder, address: str, *, is_slave: bool
    ) -> PullMessage | LitePullMessage:
        sys_flag, subscription = order.sys_flag, order.subscription
        if is_slave:
            sys_flag &= ~PULL_COMMIT_OFFSET  # offsets belong to the master
        is_lite = sys_flag & PULL_LITE_PULL_MESSAGE and address not in self._without_lite
        return (LitePullMessage if is_lite else PullMessage)(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=order.offset,
            max_msg_nums=order.max_count,
            sys_flag=sys_flag,
            commit_offset=order.commit_offset,
            suspend_timeout_millis=order.suspend_ms,
            subscription=subscription.sub_string if order.sends_expression else None,
            sub_version=order.sub_version,
            expression_type=subscription.expression_type,
            max_msg_bytes=order.max_bytes,
            broker_name=queue.broker_name,
        )

    def _read(
        self,
        queue: MessageQueue,
        subscription: SubscriptionData,
        address: str,
        reply: PullMessageReply,
        command: Command,
    ) -> list[MessageExt]:
        """The messages of a reply that pass the filters. `UnreadableReply` rather than passing over some of them."""
        if command.body is None:
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
        return messages


def only_wanted(messages: list[MessageExt], subscription: SubscriptionData) -> list[MessageExt]:
    """The messages whose tag is subscribed to: two tags of one hash look alike to the broker."""
    if not subscription.tags_set or not is_tag_type(subscription.expression_type):
        return messages
    return [message for message in messages if message.tags in subscription.tags_set]
