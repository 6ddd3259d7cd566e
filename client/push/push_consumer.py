"""A consumer whose listener is called with messages, or that is iterated over; a member of its group.

    async with PushConsumer("group", on_message, subscription={"Orders": "created || paid"}):
        ...

    async with PushConsumer("group", subscription={"Orders": "*"}) as consumer:
        async for message in consumer:      # a message is acknowledged when the next one is asked for
            ...

`push_queues.py` holds its queues, `delivery/` calls the listener, `offsets/` keeps the offsets. This file starts and
stops these parts in the official order. Mirrors `DefaultMQPushConsumer`, `DefaultMQPushConsumerImpl` and
`MQClientInstance.checkClientInBroker`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Final, Unpack

from pocketmq.protocol.bodies.client import CheckClientRequestBody, MessageModel, is_tag_type
from pocketmq.protocol.message.topics import is_retry_topic, retry_topic
from pocketmq.protocol.requests.membership import CheckClientConfig

from ..arguments import checks_arguments
from ..delivery.concurrent_delivery import ConcurrentDelivery
from ..delivery.listeners import BatchListener, Listener, ListenerCall, ListenerInvoker
from ..errors import InvalidArgument
from ..hooks.hooks import Hook, check_plain
from ..instance.instance import ClientInstance
from ..instance.instance_config import settings_of
from ..offsets.offset_store import OffsetStore
from ..producing.producer import Producer
from ..rebalancing.consumer_context import ConsumerContext
from ..rebalancing.flow_control import PullControl
from ..rebalancing.group_member import GroupMember
from ..rebalancing.subscriptions import Subscriptions
from ..settings.consumer_settings import PushConsumerSettings
from ..settings.keywords import PushConsumerOptions
from ..settings.timestamps import Start, with_start
from ..values.message import MessageExt
from ..values.validators import check_consumer_group
from .message_stream import MessageStream
from .push_queues import PushQueues, QueuesChanged

_log = logging.getLogger(__name__)

MINUTE_SECONDS: Final = 60.0

ErrorSeen = Callable[[Exception, Sequence[MessageExt]], None]


@checks_arguments
class PushConsumer(GroupMember[PushQueues]):
    """Use as `async with`, in one event loop. Settings are those of `PushConsumerSettings`, as keyword arguments.

    `listener` gets one message, `batch_listener` a list; with neither, iterate or `fetch`. `orderly` consumes each
    queue in order. `start` says where a new group begins: "first", "last" or a datetime. Callbacks, all plain
    functions: `on_assigned` and `on_revoked` get queues, `on_error` an exception of the listener and its messages,
    `on_reconnect` the address of a broker.
    """

    settings: PushConsumerSettings
    _display_name = "PushConsumer"

    def __init__(
        self,
        group: str,
        listener: Listener | None = None,
        *,
        batch_listener: BatchListener | None = None,
        orderly: bool = False,
        start: Start | None = None,
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
        asked = with_start(options, start, has_settings=settings is not None)
        super().__init__(group, settings_of(PushConsumerSettings, settings, asked), hooks, Producer)
        if listener is not None and batch_listener is not None:
            raise InvalidArgument("a consumer has one listener: give listener or batch_listener")
        if batch_listener is None and self.settings.consume_message_batch_max_size > 1:
            raise InvalidArgument("consume_message_batch_max_size needs a batch_listener")
        check_plain(on_assigned=on_assigned, on_revoked=on_revoked)
        check_plain(on_error=on_error, on_reconnect=on_reconnect)
        methods = (name for name in vars(OffsetStore) if name[0] != "_")
        if offset_store is not None and (lacks := [one for one in methods if not hasattr(offset_store, one)]):
            raise InvalidArgument(f"offset_store must be an OffsetStore, it has no {', '.join(lacks)}")
        self._stream: MessageStream | None = None
        called: Callable[..., Any] | None = batch_listener if listener is None else listener
        if called is None:
            # In order there is one call a queue, and there may be one queue only.
            called = self._stream = MessageStream(1 if orderly else self.settings.consume_thread_min)
        threads = self.settings.consume_thread_max
        self._call = ListenerCall(called, takes_batch=batch_listener is not None, threads=threads)
        self._orderly = orderly
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self._on_error, self._on_reconnect = on_error, on_reconnect
        self._own_offsets = offset_store
        self._subscriptions = Subscriptions()
        self._control = PullControl(self.settings)
        self._ended = asyncio.Event()
        for topic, expression in self.settings.subscription.items():
            self.subscribe(topic, expression)

    # -- for the user

    async def run(self) -> None:
        """Consume until the task is cancelled or the consumer is shut down.

        A consumer that was not started is started first and shut down at the end: `asyncio.run(consumer.run())`.
        """
        if self._instance is None:
            async with self:
                await self._ended.wait()
        else:
            self._running.check_loop()
            await self._ended.wait()

    def suspend(self) -> None:
        """Pull nothing until `resume`; what was pulled is still delivered."""
        self._check_usable()
        self._control.is_suspended = True

    def resume(self) -> None:
        """Pull again, and rebalance at once."""
        self._check_usable()
        self._control.is_suspended = False
        if self._instance is not None:
            self._instance.rebalance_now()

    def __aiter__(self) -> AsyncIterator[MessageExt]:
        """Messages one by one, for a consumer without listener; each is acknowledged when the next is asked for."""
        self._running.check_loop()
        return self._streamed.messages()

    async def fetch(self, max_count: int = 32, timeout_ms: int = 1_000) -> list[MessageExt]:
        """Up to `max_count` messages, acknowledged when this returns; fewer if the time is over first.

        A message that the caller then fails to handle does not arrive again: iterate, or use a listener, if it must.
        """
        self._running.check_loop()
        if max_count < 1:
            raise InvalidArgument(f"max_count must be at least 1, got {max_count}")
        return await self._streamed.fetch(max_count, timeout_ms)

    # -- life

    async def _build(self, instance: ClientInstance) -> None:
        is_clustering = self.settings.message_model is MessageModel.CLUSTERING
        if is_clustering and retry_topic(self._group) not in self._subscriptions:
            self.subscribe(retry_topic(self._group), "*")
        await super()._build(instance)

    def _make_queues(self, context: ConsumerContext[Any]) -> PushQueues:
        return PushQueues(
            context,
            ListenerInvoker(context, self._call, self._on_error),
            self._control,
            orderly=self._orderly,
            on_assigned=self._without_namespace(self._on_assigned),
            on_revoked=self._without_namespace(self._on_revoked),
            on_reconnect=self._on_reconnect,
        )

    async def _join(self, instance: ClientInstance) -> None:
        """ClientError if a broker refuses the subscription. A missing topic is no error: it is read once it exists."""
        if all(is_retry_topic(topic) for topic in self._subscriptions):
            _log.warning(
                "%s subscribes to no topic and reads nothing: give subscription={topic: '*'}, or call subscribe(topic)",
                self._group,
            )
        if self._queues.locks is not None:
            instance.spawn(self._queues.locks.keep_locked(), "locks")
        delivery = self._queues.delivery
        if isinstance(delivery, ConcurrentDelivery):
            instance.spawn(self._clean_expired(delivery), "cleaning")
        await self._announce(self._subscriptions)
        await check_expressions(instance, self._group, self._subscriptions)

    async def _leave(self, instance: ClientInstance) -> None:
        """Stop pulling and the listener, persist the offsets, unlock, unregister."""
        queues = self._queues
        await queues.stop_pulling()
        # A message that was read by iterating is done when the next one is asked for, which nobody does any more.
        wait_ms = 0 if self._stream is not None else self.settings.await_termination_millis_when_shutdown
        await queues.delivery.stop(wait_ms)
        await queues.offsets.persist_last(queues.table)
        if queues.locks is not None:
            await queues.locks.unlock_all()
        await self._unregister(instance)

    def _withdraw(self, instance: ClientInstance) -> None:
        self._ended.set()
        self._queues.delivery.abandon()
        if self._queues.locks is not None:
            self._queues.locks.give_back()
        super()._withdraw(instance)
        if self._stream is not None:
            self._stream.close()

    def _without_namespace(self, callback: QueuesChanged | None) -> QueuesChanged | None:
        """The user's callback sees queues as the user names them."""
        if callback is None or not self._namespace.name:
            return callback
        return lambda queues: callback([self._namespace.unwrap_queue(queue) for queue in queues])

    async def _clean_expired(self, delivery: ConcurrentDelivery) -> None:
        while True:
            await asyncio.sleep(self.settings.consume_timeout * MINUTE_SECONDS)
            await delivery.clean_expired(list(self._queues.table.values()))

    @property
    def _streamed(self) -> MessageStream:
        if self._stream is None:
            raise InvalidArgument("a consumer with a listener cannot be iterated")
        return self._stream


async def check_expressions(instance: ClientInstance, group: str, subscriptions: Subscriptions) -> None:
    """Let a broker check expressions that are not tags. ClientError if it refuses one."""
    routes = instance.routes
    for subscription in [*subscriptions.values()]:
        topic = subscription.topic or ""
        if is_tag_type(subscription.expression_type) or routes.publish_route(topic) is None:
            continue
        address = await routes.find_any_broker(topic)
        body = CheckClientRequestBody(
            client_id=instance.client_id, group=group, subscription_data=subscription
        )
        await instance.connections.call(
            address, CheckClientConfig(), body, timeout_seconds=instance.api_timeout_seconds
        )
