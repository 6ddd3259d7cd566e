"""A consumer that is given its messages: member of a group, with a listener, or iterated over.

    async with PushConsumer("group", on_message, subscription={"Orders": "created || paid"}):
        ...

    async with PushConsumer("group", subscription={"Orders": "*"}) as consumer:
        async for message in consumer:      # a message is done when the next one is asked for
            ...

`push_queues.py` holds its queues, `delivery/` calls the listener, `offsets/` keeps the offsets. This file starts and
stops these parts in the official order. Mirrors `DefaultMQPushConsumer` and `DefaultMQPushConsumerImpl`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Final, Unpack

from pocketmq.protocol.bodies.client import (
    CheckClientRequestBody,
    ConsumerData,
    ConsumeType,
    ExpressionError,
    MessageModel,
    SubscriptionData,
    build_subscription,
    is_tag_type,
)
from pocketmq.protocol.bodies.client_state import ConsumeMessageDirectlyResult, ConsumerRunningInfo
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import is_retry_topic, retry_topic
from pocketmq.protocol.requests.membership import CheckClientConfig

from ..clock import steady_ms, wall_ms
from ..delivery.concurrent_delivery import ConcurrentDelivery
from ..delivery.concurrent_results import max_reconsume_times
from ..delivery.listeners import Listener, ListenerCall
from ..delivery.ordered_delivery import OrderedDelivery
from ..delivery.ordered_results import max_reconsume_times as max_ordered_times
from ..delivery.retry_message import topic_for_listener
from ..delivery.send_back import SendBack
from ..delivery.statistics import ConsumerStatistics
from ..errors import ClientError, RouteNotFound
from ..hooks.callbacks import check_plain
from ..hooks.consume_hooks import consume_hooks
from ..hooks.hooks import Hook
from ..instance.client import Client
from ..instance.groups import INNER_PRODUCER_GROUP
from ..instance.instance import ClientInstance
from ..instance.instance_config import settings_of
from ..offsets.broker_store import RemoteBrokerOffsetStore
from ..offsets.file_store import LocalFileOffsetStore
from ..offsets.offset_store import OffsetStore
from ..producing.producer import trace_of
from ..producing.sender import Sender
from ..rebalancing.process_queue import ProcessQueue
from ..settings.consumer_settings import PushConsumerSettings
from ..settings.keywords import PushConsumerOptions
from ..settings.producer_settings import ProducerSettings
from ..values.listener_returns import direct_result
from ..values.message import MessageExt
from ..values.validators import check_consumer_group, check_topic
from .consumer_report import running_info
from .message_stream import MessageStream
from .pop_queues import PopQueue
from .pop_settlement import PopSettlement
from .push_queues import PushQueues, QueuesChanged

_log = logging.getLogger(__name__)

MINUTE_SECONDS: Final = 60.0

ErrorSeen = Callable[[Exception, Sequence[MessageExt]], None]


class PushConsumer(Client):
    """Use as `async with`, in one event loop. Settings are those of `PushConsumerSettings`, as keyword arguments.

    `listener` gets one message, `batch_listener` a list; with neither, iterate or `fetch`. `orderly` consumes each
    queue in order. Callbacks, all plain functions: `on_assigned` and `on_revoked` with queues, `on_error` with an
    exception of the listener and its messages, `on_reconnect` with the address of a broker.
    """

    settings: PushConsumerSettings
    _called = "PushConsumer"
    _traced_as = "CONSUME"

    def __init__(
        self,
        group: str,
        listener: Listener | None = None,
        *,
        batch_listener: Listener | None = None,
        orderly: bool = False,
        settings: PushConsumerSettings | None = None,
        on_assigned: QueuesChanged | None = None,
        on_revoked: QueuesChanged | None = None,
        on_error: ErrorSeen | None = None,
        on_reconnect: Callable[[str], None] | None = None,
        offset_store: OffsetStore | None = None,
        hooks: Iterable[Hook] = (),
        **options: Unpack[PushConsumerOptions],
    ) -> None:
        check_consumer_group(group)
        super().__init__(group, settings_of(PushConsumerSettings, settings, options), hooks, trace_of)
        if listener is not None and batch_listener is not None:
            raise ClientError("a consumer has one listener: give listener or batch_listener")
        if batch_listener is None and self.settings.consume_message_batch_max_size > 1:
            raise ClientError("consume_message_batch_max_size needs a batch_listener")
        check_plain(on_assigned=on_assigned, on_revoked=on_revoked)
        check_plain(on_error=on_error, on_reconnect=on_reconnect)
        self._stream: MessageStream | None = None
        if listener is None and batch_listener is None:
            # In order there is one call a queue, and there may be one queue only.
            self._stream = MessageStream(1 if orderly else self.settings.consume_thread_min)
        self._listener = batch_listener or listener or self._stream
        self._takes_batch = batch_listener is not None
        self._orderly = orderly
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self._on_error, self._on_reconnect = on_error, on_reconnect
        self._given_offsets = offset_store
        self._subscriptions: dict[str, SubscriptionData] = {}
        self._is_suspended = False
        self._start_ms = 0
        for topic, expression in self.settings.subscription.items():
            self.subscribe(topic, expression)

    # -- what a user does

    def subscribe(self, topic: str, expression: str = "*", expression_type: str = "TAG") -> None:
        """Read a topic: `*`, tags as `A || B`, or with expression_type SQL92 an expression of properties.

        After the start the brokers are told at once, and the queues arrive with the next round.
        """
        self._check_usable()
        topic = self.namespace.wrap(topic)
        check_topic(topic)
        try:
            self._subscriptions[topic] = build_subscription(
                topic, expression, expression_type, sub_version=steady_ms()
            )
        except ExpressionError as error:
            raise ClientError(f"subscription exception: {error}") from error
        if self._instance is not None:
            self._instance.spawn(self._announce(self._instance, [topic]), f"subscribe {topic}")

    def unsubscribe(self, topic: str) -> None:
        """Read a topic no more: its queues go with the next round."""
        self._check_usable()
        self._subscriptions.pop(self.namespace.wrap(topic), None)

    def suspend(self) -> None:
        """Pull nothing until `resume`; what was pulled is still delivered."""
        self._check_usable()
        self._is_suspended = True
        if self._instance is not None:
            self._queues.is_paused = True

    def resume(self) -> None:
        """Pull again, and share out the queues at once."""
        self._check_usable()
        self._is_suspended = False
        if self._instance is not None:
            self._queues.is_paused = False
            self._instance.rebalance_now()

    async def wait_assigned(self, timeout: float | None = 30.0) -> None:
        """Return once the first complete round is over: this member holds its share. TimeoutError, and ClientClosed
        where the consumer is shut down before."""
        self._usable  # noqa: B018  # raises unless started
        async with asyncio.timeout(timeout):
            await self._queues.assigned.wait()
        self._usable  # noqa: B018  # raises where shutdown ended the wait

    def assignment(self) -> list[MessageQueue]:
        """The queues held now, without the retry topic's, sorted."""
        return [self.namespace.unwrap_queue(queue) for queue in self._assigned()]

    def _assigned(self) -> list[MessageQueue]:
        if self._instance is None:
            return []
        held = [queue for queue, state in self._queues.table.items() if not state.dropped]
        if self._queues.pops is not None:
            held += self._queues.pops.table
        return sorted(queue for queue in held if not is_retry_topic(queue.topic))

    async def lag(self) -> dict[MessageQueue, int]:
        """Messages of each queue held that are not consumed yet: the broker's maximum minus the group's offset, or,
        where it has none, minus where this member began to read.

        Queues that are popped are left out: the broker alone knows.
        """
        self._usable  # noqa: B018  # raises unless started
        behind = await self._queues.lag()
        return {self.namespace.unwrap_queue(queue): count for queue, count in behind.items()}

    def __aiter__(self) -> AsyncIterator[MessageExt]:
        """Messages one by one, where no listener was given; each is done when the next is asked for."""
        self._running.check_loop()
        return self._streamed.messages()

    async def fetch(self, count: int, timeout: float) -> list[MessageExt]:
        """Up to so many messages, fewer when `timeout` seconds are over; they count as consumed."""
        self._running.check_loop()
        return await self._streamed.fetch(count, timeout)

    # -- life

    def _register(self, instance: ClientInstance) -> None:
        instance.groups.add_consumer(self)

    async def _join(self, instance: ClientInstance) -> None:
        """ClientError if a broker refuses the subscription. A missing topic is no error: it is read once it exists."""
        self._start_ms = wall_ms()
        if self._queues.needs_locks:
            instance.spawn(self._queues.locks.keep_locked(), "locks")
        if self._concurrent is not None:
            instance.spawn(self._clean_expired(), "cleaning")
        await self._announce(instance, list(self._subscriptions))
        await self._check_expressions(instance)

    async def _leave(self, instance: ClientInstance) -> None:
        """Stop pulling and the listener, persist the offsets, unlock, unregister."""
        await self._queues.stop_pulling()
        wait_ms = self.settings.await_termination_millis_when_shutdown
        for delivery in (self._concurrent, self._ordered):
            if delivery is not None:
                await delivery.stop(wait_ms)
        await self.offsets.persist_last(self._queues.table)
        if self._queues.needs_locks:
            await self._queues.locks.unlock_all()
        await instance.unregister_consumer(self._group)

    def _withdraw(self, instance: ClientInstance) -> None:
        instance.groups.remove_consumer(self._group)
        for delivery in (self._concurrent, self._ordered):
            if delivery is not None:
                delivery.abandon()
        if self._queues.needs_locks:
            self._queues.locks.give_back()
        self._queues.drop_all()
        self._queues.assigned.set()
        if self._stream is not None:
            self._stream.close()

    async def _build(self, instance: ClientInstance) -> None:
        settings = self.settings
        if self.is_clustering and retry_topic(self._group) not in self._subscriptions:
            self.subscribe(retry_topic(self._group), "*")
        self.statistics = ConsumerStatistics(instance.loop.time)
        self.offsets: OffsetStore = self._given_offsets or (
            RemoteBrokerOffsetStore(instance, self._group)
            if self.is_clustering
            else LocalFileOffsetStore(instance.client_id, self._group)
        )
        self._queues = PushQueues(
            instance,
            self._group,
            settings,
            self._subscriptions,
            self.offsets,
            self.statistics,
            self._deliver,
            hooks=self._hooks,
            orderly=self._orderly,
            deliver_popped=self._deliver_popped,
            on_assigned=self._without_namespace(self._on_assigned),
            on_revoked=self._without_namespace(self._on_revoked),
        )
        self._queues.is_paused = self._is_suspended
        inner = Sender(instance, INNER_PRODUCER_GROUP, ProducerSettings())
        self._send_back = SendBack(instance, inner, self._group, self.namespace)
        assert self._listener is not None
        call = ListenerCall(
            self._listener, takes_batch=self._takes_batch, threads=settings.consume_thread_max
        )
        looks_on = consume_hooks(self._hooks, self._group, settings)
        self._concurrent = None if self._orderly else ConcurrentDelivery(self, call, looks_on)
        self._ordered = self._queues.ordered = (
            OrderedDelivery(self, call, looks_on) if self._orderly else None
        )
        if self._concurrent is not None and self._queues.pops is not None:
            times = max_reconsume_times(settings.max_reconsume_times)
            self._concurrent.pop_settlement = PopSettlement(self._queues.pops.api, times)
        await self.offsets.load()

    def _without_namespace(self, callback: QueuesChanged | None) -> QueuesChanged | None:
        """The user's callback sees queues as the user names them."""
        if callback is None or not self.namespace.name:
            return callback
        return lambda queues: callback([self.namespace.unwrap_queue(queue) for queue in queues])

    def _deliver(
        self, messages: list[MessageExt], queue: MessageQueue, state: ProcessQueue, is_new: bool
    ) -> None:
        """What a pull loop brought; `is_new`: an ordered queue has no task yet."""
        if self._concurrent is not None:
            self._concurrent.submit(messages, queue, state)
        elif is_new and self._ordered is not None:
            self._ordered.submit(queue, state)

    def _deliver_popped(self, messages: list[MessageExt], queue: MessageQueue, state: PopQueue) -> None:
        """What a pop brought: only concurrent consumers pop."""
        assert self._concurrent is not None
        self._concurrent.submit(messages, queue, state)

    async def _announce(self, instance: ClientInstance, topics: Iterable[str]) -> None:
        """Find the routes, send the subscriptions to the brokers, and ask for a round."""
        every_topic_is_missing = True
        for topic in topics:
            try:
                await instance.routes.find_route(topic)
            except ClientError as error:
                every_topic_is_missing &= isinstance(error, RouteNotFound)
                if not is_retry_topic(topic):
                    _log.warning("%s: %s", self._group, error)
        if await instance.heartbeats.send():
            instance.rebalance_now()
        elif every_topic_is_missing and not instance.routes.brokers.all_addresses():
            self._queues.rebalance_without_brokers()

    async def _check_expressions(self, instance: ClientInstance) -> None:
        """Ask a broker about expressions that are not tags (official checkClientInBroker)."""
        routes = instance.routes
        for subscription in list(self._subscriptions.values()):
            topic = subscription.topic or ""
            if is_tag_type(subscription.expression_type) or routes.publish_route(topic) is None:
                continue
            address = await routes.find_any_broker(topic, main_port=True)
            body = CheckClientRequestBody(
                client_id=instance.client_id, group=self._group, subscription_data=subscription
            )
            await instance.connections.call(
                address, CheckClientConfig(), body, timeout_seconds=instance.api_timeout_seconds
            )

    async def _clean_expired(self) -> None:
        assert self._concurrent is not None
        while True:
            await asyncio.sleep(self.settings.consume_timeout * MINUTE_SECONDS)
            await self._concurrent.clean_expired(list(self._queues.table.values()))

    # -- what the instance asks

    def consumer_data(self) -> ConsumerData:
        """This group's part of a heartbeat."""
        return ConsumerData(
            group_name=self._group,
            consume_type=ConsumeType.CONSUME_PASSIVELY,
            message_model=self.settings.message_model,
            consume_from_where=self.settings.consume_from_where,
            subscription_data_set=list(self._subscriptions.values()),
            unit_mode=self.settings.unit_mode,
        )

    def subscribed_topics(self) -> list[str]:
        return list(self._subscriptions)

    async def rebalance(self) -> bool:
        """One round of sharing out the queues."""
        return await self._queues.rebalance()

    async def persist_offsets(self) -> None:
        await self.offsets.persist_all(list(self._queues.table))

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:
        """Go on elsewhere (220)."""
        await self._queues.reset(topic, offsets)

    def consumer_status(self, topic: str) -> dict[MessageQueue, int]:
        """The offsets in memory (221)."""
        return self.offsets.of_topic(topic)

    async def running_info(self) -> ConsumerRunningInfo:
        """The consumer's inner state, as tools show it (307)."""
        return running_info(
            self.settings,
            name_servers=";".join(self._running.routes.name_servers.servers),
            subscriptions=list(self._subscriptions.values()),
            table=self._queues.table,
            pops={} if self._queues.pops is None else self._queues.pops.table,
            offsets=self.offsets,
            statistics=self.statistics,
            is_orderly=self._orderly,
            start_ms=self._start_ms,
        )

    async def consume_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult | None:
        """Give one message to the listener now and say what came of it (309)."""
        began_ms = steady_ms()
        auto_commit = True
        if self._ordered is not None:
            returned, error, context = await self._ordered.call_once(message)
            auto_commit = context.auto_commit
        else:
            assert self._concurrent is not None
            returned, error, _ = await self._concurrent.call_once(message)
        return ConsumeMessageDirectlyResult(
            order=self._orderly,
            auto_commit=auto_commit,
            consume_result=direct_result(returned, raised=error is not None).value,
            remark=None if error is None else f"{type(error).__name__}: {error}",
            spent_time_mills=steady_ms() - began_ms,
        )

    def reconnected(self, address: str) -> None:
        if self._on_reconnect is not None:
            try:
                self._on_reconnect(address)
            except Exception:
                _log.exception("the on_reconnect of %s failed", self._group)

    # -- what delivery asks

    @property
    def is_clustering(self) -> bool:
        return self.settings.message_model is MessageModel.CLUSTERING

    def for_listener(self, messages: Sequence[MessageExt]) -> None:
        """Messages of the retry topics get the topic they were sent to, and none shows the namespace."""
        for message in messages:
            if is_retry_topic(message.topic):
                message.topic = topic_for_listener(message.topic, message.properties, self._group)
            if self.namespace.name:
                message.topic = self.namespace.unwrap(message.topic)

    async def lock(self, queue: MessageQueue) -> bool:
        return await self._queues.locks.lock(queue)

    async def send_back(self, message: MessageExt, delay_level: int) -> bool:
        times = max_reconsume_times(self.settings.max_reconsume_times)
        return await self._send_back.send_back(message, delay_level, times)

    async def send_to_dead_letters(self, message: MessageExt) -> bool:
        times = max_ordered_times(self.settings.max_reconsume_times)
        return await self._send_back.send_as_normal(message, times)

    def listener_failed(self, error: Exception, messages: Sequence[MessageExt]) -> None:
        _log.warning("the listener of %s failed on %r", self._group, list(messages), exc_info=error)
        if self._on_error is not None:
            try:
                self._on_error(error, messages)
            except Exception:
                _log.exception("the on_error of %s failed", self._group)

    @property
    def _streamed(self) -> MessageStream:
        if self._stream is None:
            raise ClientError("a consumer with a listener cannot be iterated")
        return self._stream
