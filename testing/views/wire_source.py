"""Any RocketMQ server over the wire as a source: an official one, or ours in another process.

A thread with a loop of its own keeps the connections. One master is looked at: that of the only broker of a topic, or
of the cluster. A topic on several brokers is refused, because queue ids would then name several queues.
"""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator
from typing import Final

from pocketmq.client import (
    AdminClient,
    ClientError,
    NotOnline,
    RequestRefused,
    RouteNotFound,
    SubscriptionGroupConfig,
    TopicConfig,
)
from pocketmq.client.clock import wall_ms
from pocketmq.client.connections.connection import Connection
from pocketmq.client.values.results import PULL_STATUS
from pocketmq.console.values import FirstPosition, Member, first_position, member_of
from pocketmq.protocol.bodies.client import SUBSCRIBE_ALL, SubscriptionData
from pocketmq.protocol.bodies.client_state import ConsumerConnection, ConsumerRunningInfo
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import PULL_SUBSCRIPTION
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import Record, decode_records
from pocketmq.protocol.message.unique_id import UniqueIdMaker
from pocketmq.protocol.requests.offset import ExplainFirstPosition, QueryConsumerOffset
from pocketmq.protocol.requests.pull import PullMessage, PullMessageReply
from pocketmq.protocol.requests.send import SendMessageReply, SendMessageV2
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import ReplyT, Request

from ..errors import NotRunningError, TestingError
from ..server.loop_thread import LoopThread
from ..state.load import Load, retry_topic_config, send_request
from .values import QueueEnds, StoredMessage, message_of

ROUTE_LOOKS: Final = 100
_TOOLS_GROUP: Final = "TOOLS_CONSUMER"
_ALL: Final = SubscriptionData(sub_string=SUBSCRIBE_ALL)
_numbers: Final = itertools.count(1)


class WireAdmin(AdminClient):
    """An admin client that sends any request."""

    async def call(self, address: str, request: Request[ReplyT], body: bytes | None = None) -> ReplyT:
        return await self._call(address, request, body)

    async def pull_at(self, address: str, request: PullMessage) -> tuple[PullMessageReply, bytes]:
        """Header and messages of the answer, also of one without messages."""
        command = await self._require_running().connections.exchange(address, request)
        if command.code not in PULL_STATUS:
            raise RequestRefused(command.code, command.remark or "", request.name)
        return Connection.read_fields(PullMessageReply, command, request.name), bytes(command.body or b"")


class WireSource:
    """See `EmbeddedSource`. `start` and `stop` mirror each other."""

    look_seconds = 0.05
    emulate: Final = 5

    def __init__(self, namesrv_addr: str) -> None:
        self.namesrv_addr = namesrv_addr
        self._thread = LoopThread("pocketmq-noproc", "the test has ended")
        self.run, self.run_async = self._thread.run, self._thread.run_async
        self._admin: WireAdmin | None = None
        self._topics: list[str] = []
        self._groups: list[str] = []
        self._turn = itertools.count()
        self._unique_ids = UniqueIdMaker(b"\x7f\0\0\1", os.getpid(), id(self), wall_ms)

    def start(self) -> None:
        """Connect. `TestingError` with one line if nobody answers."""
        self._thread.start()
        try:
            self.run(self._connect())
        except ClientError as error:
            self.stop()
            raise TestingError(f"no RocketMQ server answers at {self.namesrv_addr}: {error}") from error

    def stop(self) -> None:
        """Delete the topics and groups that were made here, and disconnect."""
        try:
            if self._admin is not None:
                self.run(self._disconnect(self._admin))
        finally:
            self._admin = None
            self._thread.stop()

    async def _disconnect(self, admin: WireAdmin) -> None:
        try:
            await self._delete()
        finally:
            await admin.shutdown()

    async def _connect(self) -> None:
        admin = WireAdmin(
            namesrv_addr=self.namesrv_addr, instance_name=f"noproc-{os.getpid()}-{next(_numbers)}"
        )
        await admin.start()
        self._admin = admin
        await admin.cluster_info()

    @property
    def admin(self) -> WireAdmin:
        if self._admin is None:
            raise NotRunningError("the test has ended")
        return self._admin

    # -- looking

    async def messages(self, topic: str) -> list[StoredMessage]:
        found = [
            message_of(record)
            for queue_id, (begin, end) in (await self.queue_ends(topic)).items()
            async for record in self._records(topic, queue_id, begin, end, _ALL)
        ]
        return sorted(found, key=lambda message: message.position)

    async def _records(
        self, topic: str, queue_id: int, begin: int, end: int, subscription: SubscriptionData
    ) -> AsyncIterator[Record]:
        """The messages of a part of a queue that match."""
        address = await self._master_of(topic)
        while address is not None and begin < end:
            request = PullMessage(
                consumer_group=_TOOLS_GROUP,
                topic=topic,
                queue_id=queue_id,
                queue_offset=begin,
                max_msg_nums=32,
                sys_flag=PULL_SUBSCRIPTION,
                commit_offset=0,
                suspend_timeout_millis=0,
                subscription=subscription.sub_string,
                expression_type=subscription.expression_type,
                sub_version=0,
            )
            reply, body = await self.admin.pull_at(address, request)
            for record in decode_records(body):
                if record.queue_offset < end:
                    yield record
            if reply.next_begin_offset <= begin:
                return
            begin = reply.next_begin_offset

    async def queue_ends(self, topic: str) -> QueueEnds:
        if await self._master_of(topic) is None:
            return {}
        table = (await self.admin.topic_status(topic)).offset_table
        return {
            queue.queue_id: (offsets.min_offset, offsets.max_offset)
            for queue, offsets in table.items()
            if offsets.max_offset > 0
        }

    async def offsets(self, topic: str, group: str) -> dict[int, int]:
        address = await self._master_of(topic)
        found: dict[int, int] = {}
        for queue in [] if address is None else await self.admin.queues(topic):
            request = QueryConsumerOffset(
                consumer_group=group, topic=topic, queue_id=queue.queue_id, set_zero_if_not_found=False
            )
            try:
                found[queue.queue_id] = (await self.admin.call(address or "", request)).offset
            except RequestRefused as refusal:
                if refusal.code != ResponseCode.QUERY_NOT_FOUND:
                    raise
        return found

    async def members(self, group: str) -> list[Member]:
        return [member_of(one) for one in (await self._connections(group)).connection_set]

    async def subscriptions(self, group: str) -> dict[str, str]:
        table = (await self._connections(group)).subscription_table
        return {topic: subscription.sub_string or "*" for topic, subscription in table.items()}

    async def is_broadcasting(self, group: str) -> bool:
        return (await self._connections(group)).message_model == "BROADCASTING"

    async def count_wanted(
        self, topic: str, group: str, ranges: dict[int, tuple[int, int]], most: int | None
    ) -> int:
        subscription = (await self._connections(group)).subscription_table.get(topic)
        if subscription is None or subscription.wants_all:
            return sum(end - begin for begin, end in ranges.values())
        count = 0
        for queue_id, (begin, end) in ranges.items():
            async for record in self._records(topic, queue_id, begin, end, subscription):
                tag = decode_properties(record.properties).get(names.TAGS)
                count += not subscription.tags_set or tag in subscription.tags_set
                if count == most:
                    return count
        return count

    async def unacknowledged(self, topic: str, group: str) -> None:
        return None  # no request asks for it; a popping group commits when it pops

    async def unknown_name(self, topic: str | None, group: str | None) -> str | None:
        if topic is not None and await self._master_of(topic) is None:
            return f"there is no topic {topic}"
        for address in [] if group is None else await self._masters():
            if await self.admin.group_config(address, group or "") is not None:
                return None
        return None if group is None else f"there is no group {group}"

    async def running_info(self, group: str, client_id: str) -> ConsumerRunningInfo | None:
        try:
            return await self.admin.consumer_running_info(group, client_id)
        except ClientError:
            return None

    async def explain(self, group: str, topic: str) -> list[FirstPosition]:
        address = await self._master_of(topic)
        if address is None:
            raise TestingError(f"there is no topic {topic}")
        request = ExplainFirstPosition(consumer_group=group, topic=topic)
        try:
            verdicts = await self.admin.call(address, request)
        except RequestRefused as refusal:
            raise TestingError(f"the broker does not explain: {refusal}") from refusal
        where = (await self._connections(group)).consume_from_where
        broker_name = await self.admin.broker_name_at(address)
        return [first_position(verdict, broker_name, where) for verdict in verdicts]

    async def state(self, topic: str, group: str) -> None:
        return None

    async def _connections(self, group: str) -> ConsumerConnection:
        try:
            return await self.admin.consumer_connections(group)
        except (NotOnline, RouteNotFound):
            return ConsumerConnection()

    async def _master_of(self, topic: str) -> str | None:
        """The master of the only broker of a topic; `None` without a route."""
        try:
            route = await self.admin.topic_route(topic)
        except RouteNotFound:
            return None
        masters = [address for one in route.broker_datas if (address := (one.broker_addrs or {}).get(0))]
        if len(masters) > 1:
            raise TestingError(f"{topic} is on {len(masters)} brokers; over the wire, views show one only")
        return masters[0] if masters else None

    # -- changing

    async def load(self, load: Load) -> None:
        for config in load.topics:
            self._topics.append(config.name)
            await self._make_topic(config)
        for group in load.groups:
            self._groups.append(group)
            for address in await self._masters():
                await self.admin.update_group(SubscriptionGroupConfig(group_name=group), address=address)
            await self._make_topic(retry_topic_config(group))
        for message in load.messages:
            queues, unique_id = await self.before_send(message.topic)
            request = send_request(message, "load", next(self._turn) % queues, unique_id)
            await self.send(request, message.body)

    async def _make_topic(self, config: TopicConfig) -> None:
        for address in await self._masters():
            await self.admin.update_topic(config, address=address)
        for _ in range(ROUTE_LOOKS):  # an official broker registers a little later
            if await self._master_of(config.name) is not None:
                return
            await asyncio.sleep(self.look_seconds)
        raise TestingError(f"the name server at {self.namesrv_addr} does not learn of topic {config.name}")

    async def _delete(self) -> None:
        """Delete what was made here, with the offsets of its groups."""
        topics, self._topics = self._topics, []
        groups, self._groups = self._groups, []
        clusters = (await self.admin.cluster_info()).cluster_addr_table or {} if topics or groups else {}
        for cluster in clusters:
            for group in groups:
                await self.admin.delete_group(group, cluster=cluster, remove_offset=True)
            for topic in topics:
                await self.admin.delete_topic(topic, cluster)

    async def before_send(self, topic: str) -> tuple[int, str]:
        address = await self._master_of(topic)
        queues = 4 if address is None else len(await self.admin.queues(topic))
        return max(queues, 1), self._unique_ids.next()

    async def send(self, request: SendMessageV2, body: bytes) -> SendMessageReply:
        address = await self._master_of(request.topic) or (await self._masters())[0]
        return await self.admin.call(address, request, body)

    async def _masters(self) -> list[str]:
        brokers = ((await self.admin.cluster_info()).broker_addr_table or {}).values()
        masters = [address for broker in brokers if (address := (broker.broker_addrs or {}).get(0))]
        if not masters:
            raise TestingError(f"the name server at {self.namesrv_addr} knows no broker")
        return masters
