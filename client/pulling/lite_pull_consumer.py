"""A consumer that polls: messages are pulled ahead in the background, and `poll` returns them in batches.

    async with LitePullConsumer("group", subscription={"Orders": "*"}) as consumer:
        async for message in consumer:
            ...

Either `subscribe`, and the group shares the queues, or `assign` queues by hand; not both. A batch is committed by a
later `poll`, by `commit` or at shutdown, not by the `poll` that returned it. Unlike the official one, `commit` of some
queues does not forget the offsets of the others. Mirrors `DefaultLitePullConsumer` and its implementation.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Unpack

from pocketmq.protocol.message.message_queue import MessageQueue

from ..arguments import checks_arguments
from ..clock import steady_ms
from ..errors import ClientError, InvalidArgument
from ..hooks.hooks import Hook, check_plain, consume_hooks
from ..instance.instance import ClientInstance
from ..instance.instance_config import settings_of
from ..offsets.broker_store import RemoteBrokerOffsetStore
from ..offsets.queue_offsets import max_offset, min_offset, search_offset
from ..producing.producer import Producer
from ..rebalancing.consumer_context import ConsumerContext
from ..rebalancing.group_member import GroupMember
from ..rebalancing.subscriptions import Subscriptions
from ..settings.consumer_settings import LitePullConsumerSettings
from ..settings.keywords import LitePullConsumerOptions
from ..settings.timestamps import Start, with_start
from ..values.listener_returns import ConsumeConcurrentlyStatus, ConsumeReturnType
from ..values.message import MessageExt
from ..values.validators import check_consumer_group
from .lite_pull_queues import LiteQueues, QueuesChanged

_log = logging.getLogger(__name__)

TopicListener = Callable[[str, list[MessageQueue]], None]


@checks_arguments
class LitePullConsumer(GroupMember[LiteQueues]):
    """Use as `async with`, in one event loop. Settings are those of `LitePullConsumerSettings`.

    `subscription` maps topics to tags, as `subscribe` does. `start` says where a new group begins: "first", "last" or
    a datetime. With `auto_commit` what was polled is committed at shutdown too; `commit_on_shutdown=False` leaves that
    out, as the official consumer does. `on_queues_changed(topic, all queues, own queues)` is
    called when the share of a subscribed topic changes.
    """

    settings: LitePullConsumerSettings
    _display_name = "LitePullConsumer"

    def __init__(
        self,
        group: str,
        *,
        start: Start | None = None,
        settings: LitePullConsumerSettings | None = None,
        subscription: Mapping[str, str] | None = None,
        commit_on_shutdown: bool = True,
        on_queues_changed: QueuesChanged | None = None,
        hooks: Iterable[Hook] = (),
        **options: Unpack[LitePullConsumerOptions],
    ) -> None:
        check_consumer_group(group)
        asked = with_start(options, start, has_settings=settings is not None)
        super().__init__(group, settings_of(LitePullConsumerSettings, settings, asked), hooks, Producer)
        check_plain(on_queues_changed=on_queues_changed)
        self._on_queues_changed = on_queues_changed
        self._consume_hooks = consume_hooks(self._hooks, self._group, self.settings)
        self._subscriptions = Subscriptions()
        self._is_assigned_by_hand: bool | None = None
        self._by_hand: list[MessageQueue] = []
        self._next_commit_ms = 0
        self._commits_last = commit_on_shutdown and self.settings.auto_commit
        self._has_failed = False
        self._reading: MessageExt | None = None
        """What a loop over this consumer works on."""
        self._topic_listeners: dict[str, tuple[TopicListener, list[MessageQueue] | None]] = {}
        for topic, expression in (subscription or {}).items():
            self.subscribe(topic, expression)

    # -- life

    def _make_queues(self, context: ConsumerContext[Any]) -> LiteQueues:
        return LiteQueues(context, self._queues_changed)

    async def _join(self, instance: ClientInstance) -> None:
        self._next_commit_ms = steady_ms() + self.settings.auto_commit_interval_millis
        instance.spawn(self._watch_topics(), "topic metadata")
        if self._is_assigned_by_hand:
            self._queues.assign(self._by_hand)
        await self._announce(self._queues.subscribed_topics())

    async def __aexit__(self, *raised: object) -> None:
        self._has_failed = raised[1] is not None
        await super().__aexit__(*raised)

    async def _leave(self, instance: ClientInstance) -> None:
        """What was polled is committed; of a block that ends with an exception, and of a loop that was left, only what
        was handled for certain."""
        await self._queues.stop()
        if self._commits_last:
            if self._reading is not None:
                self._queues.note_handled(self._reading.queue_offset)
            elif not self._has_failed:
                self._queues.note_handled()
            self._queues.remember_handled()
        await self._queues.offsets.persist_last(self._queues.assigned)
        await self._unregister(instance)

    def _queues_changed(self, topic: str, known: set[MessageQueue], assigned: set[MessageQueue]) -> None:
        if self._on_queues_changed is not None:
            unwrap = self._namespace.unwrap_queue
            self._on_queues_changed(
                self._namespace.unwrap(topic), set(map(unwrap, known)), set(map(unwrap, assigned))
            )

    # -- what to read

    def subscribe(self, topic: str, expression: str = "*", expression_type: str = "TAG") -> None:
        self._check_usable()
        self._set_mode(by_hand=False)
        super().subscribe(topic, expression, expression_type)

    def assign(self, queues: Iterable[MessageQueue], *, expressions: Mapping[str, str] | None = None) -> None:
        """Read exactly these queues from now on, whatever others of the group do; also before the start.
        `expressions`: by topic, the tags to read (official setSubExpressionForAssign)."""
        self._check_usable()
        self._set_mode(by_hand=True)
        for topic, expression in (expressions or {}).items():
            self._add_subscription(topic, expression)
        self._by_hand = [self._namespace.wrap_queue(queue) for queue in queues]
        if self._instance is not None:
            self._queues.assign(self._by_hand)
            self._instance.spawn(self._announce({queue.topic for queue in self._by_hand}), "assign")

    def on_topic_queues_changed(self, topic: str, listener: TopicListener) -> None:
        """Call the listener within `topic_metadata_check_interval_millis` when the queues of a topic change; the first
        look only remembers them."""
        self._check_usable()
        check_plain(listener=listener)
        self._topic_listeners[topic] = (listener, None)
        if self._instance is not None:
            self._instance.spawn(self._check_queues(topic), f"queues of {topic}")

    # -- reading

    async def __aiter__(self) -> AsyncIterator[MessageExt]:
        """Messages one by one, until the consumer is shut down, polled batch by batch.

        A message is handled when the next one is asked for, and is committed at shutdown or when a later batch is
        polled. If the loop is left before that, it and the rest of its batch are not committed, unless by `commit`.
        """
        while not self._closed:
            for message in await self.poll():
                self._reading = message
                yield message

    async def poll(self, timeout_ms: int | None = None) -> list[MessageExt]:
        """The next batch, empty if none arrives in time (`poll_timeout_millis`). Commits earlier batches when due."""
        queues, self._reading = self._ready, None
        limit_ms = self.settings.poll_timeout_millis if timeout_ms is None else timeout_ms
        if self.settings.auto_commit and steady_ms() >= self._next_commit_ms:
            self._next_commit_ms = steady_ms() + self.settings.auto_commit_interval_millis
            queues.remember(queues.assigned)
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_ms / 1000):
                while not self._closed:
                    messages = queues.take_ready()
                    if messages is not None:
                        return self._for_user(messages)
                    queues.arrived.clear()
                    await queues.arrived.wait()
        return []

    def _for_user(self, messages: list[MessageExt]) -> list[MessageExt]:
        """Without the namespace. Hooks are called as if a listener had consumed them."""
        if self._namespace.name:
            for message in messages:
                message.topic = self._namespace.unwrap(message.topic)
        hooks = self._consume_hooks
        if hooks is not None:
            context = hooks.before(messages, messages[0].queue)
            status = ConsumeConcurrentlyStatus.CONSUME_SUCCESS.value
            hooks.after(context, status, is_success=True, return_type=ConsumeReturnType.SUCCESS)
        return messages

    async def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Store the offsets of what was polled, or these, and wait until the brokers know them."""
        held = self._ready
        store = held.offsets
        if offsets is None:
            held.remember(held.assigned)
            queues = list(held.assigned)
        else:
            queues = [self._namespace.wrap_queue(queue) for queue in offsets]
            if min(offsets.values(), default=0) < 0:
                raise InvalidArgument("offset < 0")
            for queue, offset in zip(queues, offsets.values(), strict=True):
                store.update(queue, offset)
        for queue in queues:
            known = store.read(queue)
            if known < 0:
                continue
            if isinstance(store, RemoteBrokerOffsetStore):
                await store.commit(queue, known)
            else:
                await store.persist(queue)

    async def committed(self, queue: MessageQueue) -> int | None:
        """The group's offset in a queue, None without one. `RequestRefused`, `NotReachable` or `RouteNotFound` if the
        broker cannot be asked."""
        offsets, queue = self._ready.offsets, self._namespace.wrap_queue(queue)
        offset = offsets.read(queue)
        if offset < 0:
            if isinstance(offsets, RemoteBrokerOffsetStore):
                offset = await offsets.stored(queue)
            else:
                offset = await offsets.in_store(queue)
        return offset if offset >= 0 else None

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue at an offset; InvalidArgument outside the queue's limits, or for a queue that is not read."""
        queues = self._ready
        queue = self._namespace.wrap_queue(queue)
        if queue not in queues.assigned:
            words = "The message queue is not in assigned list"
            if not self._is_assigned_by_hand:
                words += ", may be rebalancing"
            raise InvalidArgument(f"{words}, message queue: {queue}")
        low, high = await min_offset(self._running, queue), await max_offset(self._running, queue)
        if not low <= offset <= high:
            raise InvalidArgument(
                f"Seek offset illegal, seek offset = {offset}, min offset = {low}, max offset = {high}"
            )
        queues.seek(queue, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Continue at the oldest message."""
        await self.seek(queue, await min_offset(self._require_running(), self._namespace.wrap_queue(queue)))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Continue after the newest message."""
        await self.seek(queue, await max_offset(self._require_running(), self._namespace.wrap_queue(queue)))

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Pull nothing from these until `resume`; what was pulled is still polled."""
        self._set_paused(queues, True)

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Pull from these again."""
        self._set_paused(queues, False)

    def _set_paused(self, queues: Iterable[MessageQueue], paused: bool) -> None:
        assigned = self._ready.assigned
        for queue in map(self._namespace.wrap_queue, queues):
            if queue in assigned:
                assigned[queue].paused = paused

    async def offset_for_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The first message stored at or after a time, the end if there is none."""
        return await search_offset(self._require_running(), self._namespace.wrap_queue(queue), timestamp_ms)

    # -- topics whose queues are watched

    async def _watch_topics(self) -> None:
        """Look at the topics that have a listener, once an interval."""
        while True:
            for topic in list(self._topic_listeners):
                await self._check_queues(topic)
            await asyncio.sleep(self.settings.topic_metadata_check_interval_millis / 1000)

    async def _check_queues(self, topic: str) -> None:
        """Call the topic's listener if its queues changed."""
        try:
            now = sorted(await self.queues(topic))
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
            raise InvalidArgument("Subscribe and assign are mutually exclusive.")
        self._is_assigned_by_hand = by_hand
