"""The queues a consumer holds, as far as push and lite pull consumers do it alike: rounds, first positions, offsets.

The rebalancer decides and calls here (`QueueKeeper`). Not pulling, nor giving queues up: `push/push_queues.py`,
`pulling/lite_pull_queues.py`. Mirrors what `RebalancePushImpl` and `RebalanceLitePullImpl` share.
"""

import logging
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pocketmq.protocol.bodies.client import MessageModel, SubscriptionData
from pocketmq.protocol.message.message_queue import MessageQueue

from ..errors import ClientError, RouteNotFound
from ..hooks.hooks import Hooks
from ..instance.instance import ClientInstance
from ..offsets.offset_store import OffsetStore
from ..pulling.pull_api import PullApi
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
from .rebalancer import Rebalancer

if TYPE_CHECKING:
    from ..push.pop_queues import PopQueues


_log = logging.getLogger(__name__)

TOPIC_SEARCHES: Final = 10
"""How often, once a second, to ask for topics to come before it is left to the regular refresh of routes."""


class HeldQueues(ABC):
    """Of one started consumer. `subscriptions` is the consumer's own table, by topic."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        settings: PushConsumerSettings | LitePullConsumerSettings,
        subscriptions: dict[str, SubscriptionData],
        offsets: OffsetStore,
        *,
        hooks: Hooks,
        consume_passively: bool,
        assignments: BrokerAssignments | None = None,
        pops: "PopQueues | None" = None,
    ) -> None:
        self.group = group
        self.offsets = offsets
        self.pull_api = PullApi(instance, group, hooks, unit_mode=settings.unit_mode)
        self._instance = instance
        self._subscriptions = subscriptions
        self._where = settings.consume_from_where
        self._consume_timestamp = settings.consume_timestamp
        self.is_clustering = settings.message_model is MessageModel.CLUSTERING
        self._stopped = False
        self._topics_to_come: set[str] = set()
        self._searches = 0
        self._rebalancer = Rebalancer(
            instance,
            self,
            group,
            message_model=settings.message_model,
            strategy=settings.allocate_message_queue_strategy,
            consume_passively=consume_passively,
            assignments=assignments,
            pops=pops,
        )
        self.table = self._rebalancer.table

    def drop_all(self) -> None:
        """Give up everything at once: the consumer has left the group."""
        self._rebalancer.drop_all()

    async def find_topics_to_come(self) -> bool:
        """Ask again soon for topics that are not there yet, where the official client waits for its next refresh of
        routes; False while that goes on. A push consumer's retry topic is one of them: the broker makes it with a
        group's first heartbeat and tells the name servers a moment later."""
        to_come = self._instance.routes.missing(self._subscriptions)
        if to_come != self._topics_to_come:
            self._topics_to_come, self._searches = to_come, 0
        if not to_come or self._searches >= TOPIC_SEARCHES:
            return True
        self._searches += 1
        try:
            for topic in to_come:
                with suppress(RouteNotFound):
                    await self._instance.routes.find_route(topic)
        except ClientError as error:
            _log.debug("the topics %s are not found: %s", to_come, error)
        return not self._instance.routes.missing(to_come)

    # -- what the rebalancer asks

    async def first_position(self, queue: MessageQueue) -> int:
        """Where the group goes on in a queue (official computePullFromWhereWithException)."""
        stored = await self.stored_offset(queue)
        position = compute_pull_from_where(self._where, stored, queue.topic, self._consume_timestamp)
        if isinstance(position, UseOffset):
            return position.offset
        if isinstance(position, AskMaxOffset):
            return checked_position(await self.pull_api.max_offset(queue))
        assert isinstance(position, SearchOffset)
        return checked_position(await self.pull_api.search_offset(queue, position.timestamp_ms))

    def forget_offset(self, queue: MessageQueue) -> None:
        self.offsets.remove(queue)

    async def lock(self, queue: MessageQueue) -> bool:
        return True

    def mode_chosen(self, topic: str, pulled: set[MessageQueue], popped: set[MessageQueue]) -> None:
        assert not popped, "only a push consumer lets the broker decide"

    @abstractmethod
    async def stored_offset(self, queue: MessageQueue) -> int:
        """The group's offset: from the store, or from memory first."""

    @abstractmethod
    def end(self, queue: MessageQueue, state: ProcessQueue) -> None: ...
    @abstractmethod
    async def release(self, queue: MessageQueue, state: ProcessQueue) -> bool: ...
    @abstractmethod
    def begin(self, queue: MessageQueue, state: ProcessQueue, offset: int) -> None: ...
    @abstractmethod
    async def queues_changed(self, topic: str, known: set[MessageQueue], mine: set[MessageQueue]) -> None: ...
