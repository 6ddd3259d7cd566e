"""A consumer that asks for its messages: pulled ahead in the background, handed out by `poll`.

    async with LitePullConsumer("group") as consumer:
        await consumer.subscribe("Orders")
        for message in await consumer.poll():
            ...

Either `subscribe`, and the group shares the queues, or `assign` queues by hand; not both. A batch is committed by a
later `poll` or by `commit`, not by its own. Unlike the official one, `commit` of some queues does not forget the
offsets of the others. Mirrors `DefaultLitePullConsumer` and its implementation.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Unpack

from pocketmq.protocol.bodies.client import ConsumerData, ConsumeType, MessageModel, SubscriptionData
from pocketmq.protocol.bodies.client_state import ConsumeMessageDirectlyResult, ConsumerRunningInfo
from pocketmq.protocol.message.message_queue import MessageQueue

from ..clock import steady_ms
from ..errors import ClientError
from ..hooks.callbacks import check_plain
from ..hooks.consume_hooks import consume_hooks
from ..hooks.hooks import Hook
from ..instance.client import Client
from ..instance.instance import ClientInstance
from ..instance.instance_config import settings_of
from ..offsets.broker_store import RemoteBrokerOffsetStore
from ..offsets.file_store import LocalFileOffsetStore
from ..offsets.offset_memory import OFFSET_UNREADABLE
from ..offsets.offset_store import OffsetStore, read_offset
from ..producing.producer import trace_of
from ..settings.consumer_settings import LitePullConsumerSettings
from ..settings.keywords import LitePullConsumerOptions
from ..values.listener_returns import ConsumeConcurrentlyStatus, ConsumeReturnType
from ..values.message import MessageExt
from ..values.validators import check_consumer_group
from .lite_pull_queues import LiteQueues, QueuesChanged, subscription_of
from .pull_api import PullApi

_log = logging.getLogger(__name__)

TopicListener = Callable[[str, list[MessageQueue]], None]


class LitePullConsumer(Client):
    """Use as `async with`, in one event loop. Settings are those of `LitePullConsumerSettings`.

    `on_queues_changed(topic, all queues, own queues)` is told of each change of a subscribed topic's share.
    """

    settings: LitePullConsumerSettings
    _called = "LitePullConsumer"
    _traced_as = "CONSUME"

    def __init__(
        self,
        group: str,
        *,
        settings: LitePullConsumerSettings | None = None,
        on_queues_changed: QueuesChanged | None = None,
        hooks: Iterable[Hook] = (),
        **options: Unpack[LitePullConsumerOptions],
    ) -> None:
        check_consumer_group(group)
        super().__init__(group, settings_of(LitePullConsumerSettings, settings, options), hooks, trace_of)
        check_plain(on_queues_changed=on_queues_changed)
        self._on_queues_changed = on_queues_changed
        self._subscriptions: dict[str, SubscriptionData] = {}
        self._is_assigned_by_hand: bool | None = None
        self._by_hand: list[MessageQueue] = []
        self._next_commit_ms = 0
        self._topic_listeners: dict[str, tuple[TopicListener, list[MessageQueue] | None]] = {}

    # -- life

    async def _build(self, instance: ClientInstance) -> None:
        settings = self.settings
        self.offsets: OffsetStore = (
            RemoteBrokerOffsetStore(instance, self._group)
            if settings.message_model is MessageModel.CLUSTERING
            else LocalFileOffsetStore(instance.client_id, self._group)
        )
        self._looks_on = consume_hooks(self._hooks, self._group, settings)
        self._queues = LiteQueues(
            instance,
            self._group,
            settings,
            self._subscriptions,
            self.offsets,
            self._queues_changed,
            self._hooks,
        )
        await self.offsets.load()

    def _register(self, instance: ClientInstance) -> None:
        instance.groups.add_consumer(self)

    async def _join(self, instance: ClientInstance) -> None:
        self._next_commit_ms = steady_ms() + self.settings.auto_commit_interval_millis
        instance.spawn(self._watch_topics(), "topic metadata")
        self._queues.assign(self._by_hand)
        await self._announce(self.subscribed_topics())

    async def _leave(self, instance: ClientInstance) -> None:
        """What was polled since the last commit comes again."""
        await self._queues.stop()
        await self.offsets.persist_last(self._queues.assigned)
        await instance.unregister_consumer(self._group)

    def _withdraw(self, instance: ClientInstance) -> None:
        instance.groups.remove_consumer(self._group)
        self._queues.drop_all()

    def _queues_changed(self, topic: str, known: set[MessageQueue], mine: set[MessageQueue]) -> None:
        if self._on_queues_changed is not None:
            unwrap = self.namespace.unwrap_queue
            self._on_queues_changed(
                self.namespace.unwrap(topic), {unwrap(one) for one in known}, {unwrap(one) for one in mine}
            )

    # -- what to read

    async def subscribe(self, topic: str, expression: str = "*", expression_type: str = "TAG") -> None:
        """Share the queues of a topic with the group; also before the start."""
        self._check_usable()
        self._set_mode(by_hand=False)
        topic = self.namespace.wrap(topic)
        self._subscriptions[topic] = subscription_of(topic, expression, expression_type)
        if self._instance is not None:
            await self._announce([topic])

    def unsubscribe(self, topic: str) -> None:
        """Read a topic no more: its queues go with the next round."""
        self._check_usable()
        self._subscriptions.pop(self.namespace.wrap(topic), None)

    async def assign(self, queues: Iterable[MessageQueue]) -> None:
        """Read exactly these queues from now on, whatever others of the group do."""
        self._check_usable()
        self._set_mode(by_hand=True)
        self._by_hand = [self.namespace.wrap_queue(queue) for queue in queues]
        if self._instance is not None:
            self._queues.assign(self._by_hand)
            await self._announce({queue.topic for queue in self._by_hand})

    def set_sub_expression_for_assign(self, topic: str, expression: str) -> None:
        """The tags to read of an assigned topic; before `assign`."""
        topic = self.namespace.wrap(topic)
        self._subscriptions[topic] = subscription_of(topic, expression, "TAG")

    def assignment(self) -> list[MessageQueue]:
        """The queues that are read, sorted."""
        if self._instance is None:
            return []
        return sorted(self.namespace.unwrap_queue(queue) for queue in self._queues.assigned)

    async def fetch_message_queues(self, topic: str) -> list[MessageQueue]:
        """Every readable queue of a topic; `RouteNotFound` where there is none."""
        route = await self._usable.routes.find_route(self.namespace.wrap(topic))
        return [self.namespace.unwrap_queue(queue) for queue in route.read_queues()]

    def register_topic_message_queue_change_listener(self, topic: str, listener: TopicListener) -> None:
        """Be told, within `topic_metadata_check_interval_millis`, when the queues of a topic change; what they are at
        the first look is no change."""
        self._check_usable()
        check_plain(listener=listener)
        self._topic_listeners[topic] = (listener, None)
        if self._instance is not None:
            self._instance.spawn(self._look_at(topic), f"queues of {topic}")

    # -- reading

    async def poll(self, timeout_ms: int | None = None) -> list[MessageExt]:
        """The next batch, empty where none came in time (`poll_timeout_millis`). Commits earlier ones when due."""
        self._usable  # noqa: B018  # raises unless started
        limit_ms = self.settings.poll_timeout_millis if timeout_ms is None else timeout_ms
        if self.settings.auto_commit and steady_ms() >= self._next_commit_ms:
            self._next_commit_ms = steady_ms() + self.settings.auto_commit_interval_millis
            self._queues.remember(self._queues.assigned)
        try:
            async with asyncio.timeout(limit_ms / 1000):
                while not self._closed:
                    messages = self._queues.take_ready()
                    if messages is not None:
                        return self._for_user(messages)
                    self._queues.arrived.clear()
                    await self._queues.arrived.wait()
        except TimeoutError:
            pass
        return []

    def _for_user(self, messages: list[MessageExt]) -> list[MessageExt]:
        """Without the namespace; and hooks are told, as if a listener had taken them."""
        if self.namespace.name:
            for message in messages:
                message.topic = self.namespace.unwrap(message.topic)
        if self._looks_on is not None:
            seen = self._looks_on.before(messages, messages[0].queue)
            status = ConsumeConcurrentlyStatus.CONSUME_SUCCESS.value
            self._looks_on.after(seen, status, is_success=True, return_type=ConsumeReturnType.SUCCESS)
        return messages

    async def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Tell the broker how far was polled, or these offsets, and wait until it knows."""
        self._usable  # noqa: B018  # raises unless started
        if offsets is None:
            self._queues.remember(self._queues.assigned)
            queues = list(self._queues.assigned)
        else:
            queues = [self.namespace.wrap_queue(queue) for queue in offsets]
            if min(offsets.values(), default=0) < 0:
                raise ClientError("offset < 0")
            for queue, offset in zip(queues, offsets.values(), strict=True):
                self.offsets.update(queue, offset)
        for queue in queues:
            known = self.offsets.read(queue)
            if known < 0:
                continue
            if isinstance(self.offsets, RemoteBrokerOffsetStore):
                await self.offsets.commit(queue, known)
            else:
                await self.offsets.persist(queue)

    async def committed(self, queue: MessageQueue) -> int:
        """The group's offset in a queue, -1 without one. ClientError where the broker cannot be asked."""
        self._usable  # noqa: B018
        offset = await read_offset(self.offsets, self.namespace.wrap_queue(queue))
        if offset == OFFSET_UNREADABLE:
            raise ClientError(f"Fetch consume offset from broker exception: {queue}")
        return offset

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Read on from an offset; ClientError outside the queue's limits, or for a queue that is not read."""
        self._usable  # noqa: B018
        queue = self.namespace.wrap_queue(queue)
        if queue not in self._queues.assigned:
            words = "The message queue is not in assigned list"
            if not self._is_assigned_by_hand:
                words += ", may be rebalancing"
            raise ClientError(f"{words}, message queue: {queue}")
        api = self._api
        low, high = await api.min_offset(queue), await api.max_offset(queue)
        if not low <= offset <= high:
            raise ClientError(
                f"Seek offset illegal, seek offset = {offset}, min offset = {low}, max offset = {high}"
            )
        self._queues.seek(queue, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Read on from the oldest message."""
        await self.seek(queue, await self._api.min_offset(self.namespace.wrap_queue(queue)))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Read on from what comes next."""
        await self.seek(queue, await self._api.max_offset(self.namespace.wrap_queue(queue)))

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Pull nothing from these until `resume`; what was pulled is still polled."""
        self._set_paused(queues, True)

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Pull from these again."""
        self._set_paused(queues, False)

    def _set_paused(self, queues: Iterable[MessageQueue], paused: bool) -> None:
        self._usable  # noqa: B018
        for queue in map(self.namespace.wrap_queue, queues):
            if queue in self._queues.assigned:
                self._queues.assigned[queue].paused = paused

    async def offset_for_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The first message stored at or after a time, the end where there is none."""
        return await self._api.search_offset(self.namespace.wrap_queue(queue), timestamp_ms)

    @property
    def _api(self) -> PullApi:
        self._usable  # noqa: B018
        return self._queues.pull_api

    # -- what the instance asks

    def consumer_data(self) -> ConsumerData:
        return ConsumerData(
            group_name=self._group,
            consume_type=ConsumeType.CONSUME_ACTIVELY,
            message_model=self.settings.message_model,
            consume_from_where="CONSUME_FROM_LAST_OFFSET",
            subscription_data_set=list(self._subscriptions.values()),
            unit_mode=self.settings.unit_mode,
        )

    def subscribed_topics(self) -> list[str]:
        return list({*self._subscriptions, *(queue.topic for queue in self._queues.assigned)})

    async def rebalance(self) -> bool:
        if self._is_assigned_by_hand or self._closed:
            return True
        return await self._queues.rebalance()

    async def persist_offsets(self) -> None:
        await self.offsets.persist_all(list(self._queues.assigned))

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:
        """Nothing: a broker's reset is for push consumers, as in Java; `seek` is this one's way."""

    def consumer_status(self, topic: str) -> dict[MessageQueue, int]:
        return self.offsets.of_topic(topic)

    async def running_info(self) -> ConsumerRunningInfo:
        """The consumer's inner state, as tools show it (307)."""
        self._running  # noqa: B018  # raises before the start
        return ConsumerRunningInfo(
            properties={"PROP_CONSUME_TYPE": "CONSUME_ACTIVELY", "PROP_CLIENT_VERSION": "V5_5_0"},
            subscription_set=list(self._subscriptions.values()),
            mq_table={
                queue: one.state.info(max(self.offsets.read(queue), 0))
                for queue, one in self._queues.assigned.items()
            },
        )

    async def consume_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult | None:
        return None

    def reconnected(self, address: str) -> None:
        """Nothing to do: the pull loops go on by themselves."""

    # -- routes

    async def _announce(self, topics: Iterable[str]) -> None:
        """Find the routes, tell the brokers, and ask for a round: also where a topic is still to come, and there is
        nobody to tell."""
        instance = self._running
        is_to_come = False
        for topic in topics:
            try:
                await instance.routes.find_route(topic)
            except ClientError as error:
                is_to_come = True
                _log.warning("%s: %s", self._group, error)
        if await instance.heartbeats.send() or (is_to_come and not instance.routes.brokers.all_addresses()):
            instance.rebalance_now()

    async def _watch_topics(self) -> None:
        """Look at the topics that somebody listens to, once an interval."""
        while True:
            for topic in list(self._topic_listeners):
                await self._look_at(topic)
            await asyncio.sleep(self.settings.topic_metadata_check_interval_millis / 1000)

    async def _look_at(self, topic: str) -> None:
        """One topic's queues, and its listener told where they changed."""
        try:
            now = sorted(await self.fetch_message_queues(topic))
        except ClientError as error:
            _log.warning("queues of %s: %s", topic, error)
            return
        listener, before = self._topic_listeners[topic]
        self._topic_listeners[topic] = (listener, now)
        if before is None or now == before:
            return
        try:
            listener(topic, now)
        except Exception:
            _log.exception("the listener for the queues of %s failed", topic)

    def _set_mode(self, *, by_hand: bool) -> None:
        if self._is_assigned_by_hand not in (None, by_hand):
            raise ClientError("Subscribe and assign are mutually exclusive.")
        self._is_assigned_by_hand = by_hand
