"""Which queues the broker gives this member, and whether to pull or to pop them (5.x, `client_rebalance=False`).

Mirrors `RebalanceImpl.getRebalanceResultFromBroker` and `MQClientInstance.queryAssignment`. The answer is acted upon in
`held_queues.py`.
"""

import logging
from typing import Final

from pocketmq.protocol.bodies.client import (
    QueryAssignmentRequestBody,
)
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.requests.pop import QueryAssignment

from ..errors import ClientError
from ..settings.consumer_settings import PushConsumerSettings
from .consumer_context import ConsumerContext
from .plan import split_assignments

_log = logging.getLogger(__name__)

TIMEOUT_SECONDS: Final = 3.0


class BrokerAssignments:
    """Asks for one group, whose strategy is one the broker knows (AVG, AVG_BY_CIRCLE)."""

    def __init__(self, context: ConsumerContext[PushConsumerSettings]) -> None:
        self._context = context

    async def of_topic(self, topic: str) -> tuple[set[MessageQueue], set[MessageQueue]] | None:
        """The queues to pull and those to pop; None if the broker cannot answer: then everything stays as it is.

        A queue to pop mostly has the id -1, which is any queue of the broker.
        """
        instance, settings = self._context.instance, self._context.settings
        body = QueryAssignmentRequestBody(
            topic=topic,
            consumer_group=self._context.group,
            client_id=instance.client_id,
            strategy_name=settings.allocate_message_queue_strategy.name,
            message_model=settings.message_model.value,
        )
        try:
            address = await instance.routes.find_any_broker(topic)
            reply = await instance.connections.call(
                address, QueryAssignment(), body, timeout_seconds=TIMEOUT_SECONDS
            )
            assigned = reply.message_queue_assignments
        except (ClientError, ProtocolError) as error:
            # The retry topic is created with the group's first heartbeat: it is asked for again in a second.
            level = logging.DEBUG if is_retry_topic(topic) else logging.WARNING
            _log.log(level, "assignment of %s in %s: %s", self._context.group, topic, error)
            return None
        return None if assigned is None else split_assignments(assigned)
