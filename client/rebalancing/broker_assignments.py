"""Which queues the broker gives this member, and whether to pull or to pop them (5.x, `client_rebalance=False`).

Mirrors `RebalanceImpl.getRebalanceResultFromBroker` and `MQClientInstance.queryAssignment`. The answer is acted upon in
`rebalancer.py`.
"""

import logging
from typing import Final

from pocketmq.protocol.bodies.client import (
    MessageModel,
    QueryAssignmentRequestBody,
)
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.requests.pop import QueryAssignment

from ..connections.pool import ConnectionPool
from ..errors import ClientError
from ..instance.route_book import RouteBook
from .plan import split_assignments

_log = logging.getLogger(__name__)

TIMEOUT_SECONDS: Final = 3.0


class BrokerAssignments:
    """Asks for one group; `strategy_name` is one the broker knows (AVG, AVG_BY_CIRCLE)."""

    def __init__(
        self,
        routes: RouteBook,
        connections: ConnectionPool,
        client_id: str,
        group: str,
        strategy_name: str,
        message_model: MessageModel,
    ) -> None:
        self._routes = routes
        self._connections = connections
        self._client_id = client_id
        self._group = group
        self._strategy_name = strategy_name
        self._message_model = message_model

    async def of_topic(self, topic: str) -> tuple[set[MessageQueue], set[MessageQueue]] | None:
        """The queues to pull and those to pop; None if the broker cannot answer: then everything stays as it is.

        A queue to pop mostly has the id -1, which is any queue of the broker.
        """
        body = QueryAssignmentRequestBody(
            topic=topic,
            consumer_group=self._group,
            client_id=self._client_id,
            strategy_name=self._strategy_name,
            message_model=self._message_model.value,
        )
        try:
            address = await self._routes.find_any_broker(topic)
            reply = await self._connections.call(
                address, QueryAssignment(), body, timeout_seconds=TIMEOUT_SECONDS
            )
            assigned = reply.message_queue_assignments
        except (ClientError, ProtocolError) as error:
            # The retry topic is created with the group's first heartbeat: it is asked for again in a second.
            level = logging.DEBUG if is_retry_topic(topic) else logging.WARNING
            _log.log(level, "assignment of %s in %s: %s", self._group, topic, error)
            return None
        return None if assigned is None else split_assignments(assigned)
