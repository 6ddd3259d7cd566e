"""Single messages: find them by id, key or offset, read them, send them again, follow them to their consumers."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from enum import StrEnum
from typing import Final

import msgspec
from pocketmq.protocol.bodies.client import ConsumeType
from pocketmq.protocol.bodies.client_state import ConsumeMessageDirectlyResult, ConsumerConnection
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.offset_id import decode_message_id, unpack_host
from pocketmq.protocol.message.topics import TRACE_TOPIC
from pocketmq.protocol.message.unique_id import decode_unique_id
from pocketmq.protocol.requests.pull import QueryMessage, ViewMessageById
from pocketmq.protocol.requests.to_client import ConsumeMessageDirectly
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..arguments import checks_arguments
from ..clock import wall_ms
from ..errors import Absence, ClientError, MessageNotFound, NotOnline, RequestRefused
from ..hooks.trace_records import TraceType, decode_traces
from ..producing.producer import Producer
from ..pulling.pull_api import PullApi, PullOrder
from ..rebalancing.subscriptions import subscription_of
from ..settings.client_settings import ClientSettings
from ..settings.producer_settings import ProducerSettings
from ..values.message import MessageExt, decode_messages
from ..values.results import PullResult, PullStatus, SendResult
from .brokers import AdminBrokers
from .calls import TOOLS_GROUP, master_of, one_address

SHOWN_TRACES: Final = (TraceType.PUB, TraceType.SUB_AFTER)
"""The official tool shows no others."""
MAX_COUNT: Final = 64
UNIQUE_KEY_COUNT: Final = 32
LONG_MAX: Final = (1 << 63) - 1
DAY_MS: Final = 86_400_000
BY_KEY: Final = "K"
BY_TAG: Final = "T"
BY_UNIQUE_KEY: Final = "U"
PULL_COUNT: Final = 32
PORT_MAX: Final = 65_535
RESEND_GROUP: Final = "ReSendMsgById"


class TrackType(StrEnum):
    """What became of a message in a group (official TrackType)."""

    CONSUMED = "CONSUMED"
    CONSUMED_BUT_FILTERED = "CONSUMED_BUT_FILTERED"
    PULL = "PULL"
    NOT_CONSUME_YET = "NOT_CONSUME_YET"
    NOT_ONLINE = "NOT_ONLINE"
    CONSUME_BROADCASTING = "CONSUME_BROADCASTING"
    UNKNOWN = "UNKNOWN"


class TraceView(msgspec.Struct, frozen=True):
    """What one client did with a message. `timestamp` in epoch ms, `cost_ms` of the send or of the listener."""

    kind: TraceType
    """PUB or SUB_AFTER."""
    group: str
    client_host: str
    timestamp: int
    cost_ms: int
    is_success: bool


def trace_views(trace: MessageExt, message_id: str) -> Iterator[TraceView]:
    """The records of one trace message that are about a message; none if the trace cannot be read."""
    host = trace.born_host.rpartition(":")[0]
    try:
        contexts = decode_traces(trace.body.decode("utf-8", "replace"))
    except ClientError:
        return
    for context in contexts:
        if context.trace_type in SHOWN_TRACES and any(bean.msg_id == message_id for bean in context.beans):
            yield TraceView(
                context.trace_type,
                context.group_name,
                host,
                context.timestamp_ms,
                context.cost_ms,
                context.is_success,
            )


class MessageTrack(msgspec.Struct, frozen=True):
    """One group's part in `message_track` (official MessageTrack). `reason` says why it is not known."""

    group: str
    track_type: TrackType
    reason: str | None = None


@checks_arguments
class AdminMessages(AdminBrokers):
    """Whether a message was consumed follows from the offsets and connections of its groups: `AdminOffsets`."""

    async def message(self, topic: str, message_id: str) -> MessageExt:
        """A message by either of its ids (queryMessage); `MessageNotFound`.

        A broker's id names the broker and the position in its log. Any other id is searched as a producer's id, from
        three days before the time it contains.
        """
        stored = await self._stored_at(topic, message_id)
        if stored is not None:
            return stored
        try:
            created_ms = decode_unique_id(message_id, wall_ms()).created_ms
        except BodyError as error:
            raise MessageNotFound(f"{message_id} is not a message id: {error}") from error
        found = await self.messages_by_unique_key(topic, message_id, begin_ms=created_ms - 3 * DAY_MS)
        if not found:
            raise MessageNotFound("query message by id finished, but no message.")
        return found[0]

    async def message_at(self, queue: MessageQueue, offset: int) -> MessageExt | None:
        """The message at a queue offset, `None` if it does not exist (official QueryMsgByOffsetSubCommand)."""
        result = await self.pull(queue, offset, max_count=1)
        return result.messages[0] if result.messages else None

    async def messages_by_key(
        self,
        topic: str,
        key: str,
        *,
        max_count: int = MAX_COUNT,
        begin_ms: int = 0,
        end_ms: int = LONG_MAX,
        key_type: str = BY_KEY,
        last_key: str | None = None,
        route_topic: str | None = None,
    ) -> list[MessageExt]:
        """Messages stored in a time span that have a key, or with `key_type` T a tag (queryMessage).

        At most `max_count` from each broker; `RouteNotFound` for an unknown topic.
        """
        request = QueryMessage(
            topic=topic,
            key=key,
            max_num=max_count,
            begin_timestamp=begin_ms,
            end_timestamp=end_ms,
            index_type=key_type,
            last_key=last_key,
        )
        found = await self._query(request, route_topic or topic)
        if key_type == BY_TAG:
            return [message for message in found if message.tags == key and message.topic == topic]
        return [message for message in found if key in message.keys.split(" ") and message.topic == topic]

    async def messages_by_unique_key(
        self,
        topic: str,
        message_id: str,
        *,
        max_count: int = UNIQUE_KEY_COUNT,
        begin_ms: int = 0,
        end_ms: int = LONG_MAX,
        route_topic: str | None = None,
    ) -> list[MessageExt]:
        """Messages with a producer's id (queryMessageByUniqKey), oldest first: retries have that of the original."""
        request = QueryMessage(
            topic=topic,
            key=message_id,
            max_num=max_count,
            begin_timestamp=begin_ms,
            end_timestamp=end_ms,
            index_type=BY_UNIQUE_KEY,
            unique_key_query=True,
        )
        found = await self._query(request, route_topic or topic)
        return sorted(
            (message for message in found if message.message_id == message_id),
            key=lambda message: message.store_timestamp,
        )

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        tags: str = "*",
        max_count: int = PULL_COUNT,
        group: str = TOOLS_GROUP,
    ) -> PullResult:
        """One pull that does not wait and commits nothing, for `group` (official DefaultMQPullConsumer.pull).
        `InvalidArgument` for tags that cannot be read."""
        order = PullOrder(offset=offset, subscription=subscription_of(queue.topic, tags), max_count=max_count)
        return await PullApi(self._require_running(), group).pull(queue, order)

    async def read(
        self, queue: MessageQueue, begin: int, end: int, *, tags: str = "*", max_count: int = PULL_COUNT
    ) -> AsyncIterator[PullResult]:
        """The pulls that read a queue from an offset up to another (official PrintMessageSubCommand).

        The last pull may bring messages beyond `end`, or say that there is nothing new or no such offset.
        """
        offset = begin
        while offset < end:
            result = await self.pull(queue, offset, tags=tags, max_count=max_count)
            yield result
            if result.status in (PullStatus.NO_NEW_MSG, PullStatus.OFFSET_ILLEGAL):
                return
            offset = result.next_offset

    async def consume_directly(
        self, group: str, client_id: str, topic: str, message_id: str
    ) -> ConsumeMessageDirectlyResult:
        """Give a message to a member's listener now, and return the outcome (consumeMessageDirectly)."""
        message = await self.message(topic, message_id)
        request = ConsumeMessageDirectly(
            consumer_group=group, client_id=client_id, topic=topic, msg_id=message.offset_message_id
        )
        return await self._call(_store_address(message), request, is_slow=True)

    async def resend(self, topic: str, message_id: str, *, unit_name: str | None = None) -> SendResult:
        """Send a stored message once more, with its properties and its producer's id (official QueryMsgByIdSubCommand
        with -s); errors as `Producer.send`."""
        message = await self.message(topic, message_id)
        shared = {name: getattr(self.settings, name) for name in ClientSettings.__struct_fields__}
        own = {"instance_name": str(wall_ms()), "unit_name": unit_name or self.settings.unit_name}
        settings = ProducerSettings(**shared | own)
        async with Producer(RESEND_GROUP, settings=settings, hooks=self.hooks) as producer:
            return await producer.resend(message)

    async def trace(
        self,
        message_id: str,
        *,
        trace_topic: str = TRACE_TOPIC,
        begin_ms: int = 0,
        end_ms: int = LONG_MAX,
        max_count: int = MAX_COUNT,
    ) -> list[TraceView]:
        """What producers and consumers with `enable_trace` did with a message (official QueryMsgTraceById)."""
        found = await self.messages_by_key(
            trace_topic, message_id, begin_ms=begin_ms, end_ms=end_ms, max_count=max_count
        )
        return [view for trace in found for view in trace_views(trace, message_id)]

    # -- which groups consumed it

    async def message_track(self, message: MessageExt) -> list[MessageTrack]:
        """For each group that reads its topic, whether it consumed the message (messageTrackDetail)."""
        return [await self._track(message, group) for group in await self.groups_of_topic(message.topic)]

    async def is_consumed(self, message: MessageExt, group: str) -> bool:
        """Whether the group's offset is beyond the message (consumed)."""
        stats = await self.consume_stats(group)
        table = (await self.cluster_info()).broker_addr_table or {}
        for queue, progress in stats.offset_table.items():
            if (queue.topic, queue.queue_id) != (message.topic, message.queue_id):
                continue
            master = master_of(table.get(queue.broker_name))
            if master == _store_address(message) and progress.consumer_offset > message.queue_offset:
                return True
        return False

    async def _track(self, message: MessageExt, group: str) -> MessageTrack:
        try:
            connections = await self.consumer_connections(group)
        except NotOnline as error:
            return MessageTrack(
                group, TrackType.NOT_ONLINE, f"CODE:{ResponseCode.CONSUMER_NOT_ONLINE:d} DESC:{error}"
            )
        except ClientError as error:
            return MessageTrack(group, TrackType.UNKNOWN, str(error))
        if connections.consume_type == ConsumeType.CONSUME_ACTIVELY:
            return MessageTrack(group, TrackType.PULL)
        if connections.consume_type != ConsumeType.CONSUME_PASSIVELY:
            return MessageTrack(group, TrackType.UNKNOWN)
        try:
            is_consumed = await self.is_consumed(message, group)
        except NotOnline as error:
            is_broadcasting = error.reason is Absence.BROADCASTING
            kind = TrackType.CONSUME_BROADCASTING if is_broadcasting else TrackType.NOT_ONLINE
            return MessageTrack(group, kind, str(error))
        except ClientError as error:
            return MessageTrack(group, TrackType.UNKNOWN, str(error))
        if not is_consumed:
            return MessageTrack(group, TrackType.NOT_CONSUME_YET)
        is_filtered = _is_filtered(message, connections)
        return MessageTrack(group, TrackType.CONSUMED_BUT_FILTERED if is_filtered else TrackType.CONSUMED)

    # -- parts

    async def _query(self, request: QueryMessage, route_topic: str) -> list[MessageExt]:
        """What all brokers of a topic find. A failure is raised only if no broker found anything."""
        route = await self.topic_route(route_topic)
        brokers = [
            (broker.broker_name or "", address)
            for broker in route.broker_datas
            if (address := one_address(broker)) is not None
        ]
        answers = await asyncio.gather(
            *(self._query_one(request, name, address) for name, address in brokers), return_exceptions=True
        )
        found: list[MessageExt] = []
        failure: BaseException | None = None
        for answer in answers:
            if isinstance(answer, BaseException):
                failure = answer
            else:
                found += answer
        if failure is not None and not found:
            raise failure
        return found

    async def _stored_at(self, topic: str, message_id: str) -> MessageExt | None:
        """The message at the position a broker's id names. A producer's id looks the same, but names no broker."""
        try:
            stored = decode_message_id(message_id)
            host, port = unpack_host(stored.host)
            if not 0 < port <= PORT_MAX:
                return None
            request = ViewMessageById(topic=topic, offset=stored.position)
            record = await self._call(_address(host, port), request)
            return decode_messages(record, "")[0]
        except (BodyError, ClientError, ValueError, IndexError):
            return None

    async def _query_one(self, request: QueryMessage, broker_name: str, address: str) -> list[MessageExt]:
        try:
            return await self._read_body(
                address, request, lambda body: decode_messages(body, broker_name), is_slow=True
            )
        except RequestRefused as refusal:
            if refusal.code == ResponseCode.QUERY_NOT_FOUND:
                return []
            raise


def _store_address(message: MessageExt) -> str:
    return _address(*unpack_host(message.record.store_host))


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_filtered(message: MessageExt, connections: ConsumerConnection) -> bool:
    """Whether a subscription of the group to the topic excludes the message's tag."""
    return any(
        data.topic == message.topic
        and bool(data.tags_set)
        and message.tags not in data.tags_set
        and "*" not in data.tags_set
        for data in connections.subscription_table.values()
    )
