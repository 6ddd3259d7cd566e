"""The queues a consumer holds: what push and lite pull consumers have in common, rounds, first positions and offsets.

The rebalancer calls it as its `QueueKeeper`. Pulling and giving queues up differ: `push/push_queues.py` and
`pulling/lite_pull_queues.py`. Mirrors what `RebalancePushImpl` and `RebalanceLitePullImpl` share.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from pocketmq.protocol.bodies.client import MessageModel
from pocketmq.protocol.message.message_queue import MessageQueue

from ..errors import ClientError, RouteNotFound
from ..instance.instance import ClientInstance
from ..offsets.offset_questions import OffsetQuestions
from ..offsets.offset_store import OffsetStore
from ..settings.consumer_settings import LitePullConsumerSettings, PushConsumerSettings
from .broker_assignments import BrokerAssignments
from .first_position import (
    AskMaxOffset,
    SearchOffset,
    UseOffset,
    checked_position,
    compute_pull_from_where,
)
from .process_queue import ProcessQueue
from .queue_table import QueueTable
from .rebalancer import Rebalancer
from .subscriptions import Subscriptions

_log = logging.getLogger(__name__)

TOPIC_SEARCHES: Final = 10
"""How often, once a second, to ask for missing topics before the regular refresh of routes does it."""


class HeldQueues(ABC):
    """Of one started consumer."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        settings: PushConsumerSettings | LitePullConsumerSettings,
        subscriptions: Subscriptions,
        offsets: OffsetStore,
        table: QueueTable,
        *,
        consume_passively: bool,
        assignments: BrokerAssignments | None = None,
    ) -> None:
        self.group = group
        self.offsets = offsets
        self.table = table
        self.questions = OffsetQuestions(instance.routes, instance.connections)
        self._instance = instance
        self._subscriptions = subscriptions
        self._where = settings.consume_from_where
        self._consume_timestamp = settings.consume_timestamp
        self.is_clustering = settings.message_model is MessageModel.CLUSTERING
        self._stopped = False
        self._missing: set[str] = set()
        self._searches = 0
        self._rebalancer = Rebalancer(
            instance,
            self,
            group,
            table,
            message_model=settings.message_model,
            strategy=settings.allocate_message_queue_strategy,
            consume_passively=consume_passively,
            assignments=assignments,
        )

    def drop_all(self) -> None:
        """Give up everything at once: the consumer has left the group."""
        self._rebalancer.drop_all()

    async def find_missing_topics(self) -> bool:
        """Ask again soon for topics that do not exist yet; the official client waits for its next refresh of routes.
        False while some are missing. The retry topic is one of them at first: the broker creates it with the group's
        first heartbeat and registers it at the name servers a moment later."""
        missing = self._instance.routes.missing(self._subscriptions)
        if missing != self._missing:
            self._missing, self._searches = missing, 0
        if not missing or self._searches >= TOPIC_SEARCHES:
            return True
        self._searches += 1
        try:
            for topic in missing:
                with suppress(RouteNotFound):
                    await self._instance.routes.find_route(topic)
        except ClientError as error:
            _log.debug("the topics %s are not found: %s", missing, error)
        return not self._instance.routes.missing(missing)

    # -- QueueKeeper

    async def first_position(self, queue: MessageQueue) -> int:
        """Where the group goes on in a queue (official computePullFromWhereWithException)."""
        stored = await self.stored_offset(queue)
        position = compute_pull_from_where(self._where, stored, queue.topic, self._consume_timestamp)
        if isinstance(position, UseOffset):
            return position.offset
        if isinstance(position, AskMaxOffset):
            return checked_position(await self.questions.max_offset(queue))
        assert isinstance(position, SearchOffset)
        return checked_position(await self.questions.search_offset(queue, position.timestamp_ms))

    def forget_offset(self, queue: MessageQueue) -> None:
        self.offsets.remove(queue)

    async def lock(self, queue: MessageQueue) -> bool:
        return True

    def mode_chosen(self, topic: str, pulled: set[MessageQueue], popped: set[MessageQueue]) -> None:
        assert not popped, "only a push consumer lets the broker decide"

    def exchange_popped(self, topic: str, popped: set[MessageQueue]) -> bool:
        return False

    def keep_popped(self, topics: Collection[str]) -> None:  # noqa: B027  # only a push consumer pops
        """Nothing is popped."""

    @abstractmethod
    async def stored_offset(self, queue: MessageQueue) -> int:
        """The group's offset: from the store, or from memory first."""

    @abstractmethod
    def end(self, queue: MessageQueue, process_queue: ProcessQueue) -> None: ...
    @abstractmethod
    async def release(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool: ...
    @abstractmethod
    def begin(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None: ...
    @abstractmethod
    async def queues_changed(
        self, topic: str, known: set[MessageQueue], assigned: set[MessageQueue]
    ) -> None: ...
