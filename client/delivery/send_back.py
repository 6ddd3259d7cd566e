"""Sends failed messages back to the broker, which delivers them again later or moves them to the dead letters.

First the broker is asked to do it (36); if that fails, a copy is sent to the retry topic of the group.
Mirrors `DefaultMQPushConsumerImpl.sendMessageBack`.
"""

import logging
from typing import Final

from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.topics import retry_topic
from pocketmq.protocol.requests.send import ConsumerSendMsgBack

from ..connections.pool import ConnectionPool
from ..errors import ClientError, RouteNotFound
from ..instance.route_book import RouteBook
from ..producing.sender import Sender
from ..values.message import Message, MessageExt
from ..values.namespaces import Namespace
from .concurrent_results import SEND_BACK_TIMEOUT_MS, concurrent_reconsume_limit
from .ordered_results import ordered_reconsume_limit
from .retry_message import retry_properties

_log = logging.getLogger(__name__)

INNER_SEND_ATTEMPTS: Final = 3


class SendBack:
    """For one group. `sender` is that of the inner producer."""

    def __init__(
        self,
        routes: RouteBook,
        connections: ConnectionPool,
        sender: Sender,
        group: str,
        namespace: Namespace,
        max_reconsume_times: int,
    ) -> None:
        self._routes = routes
        self._connections = connections
        self._sender = sender
        self._group = group
        self._namespace = namespace
        self._max_reconsume_times = max_reconsume_times
        """The setting: what -1 means depends on the kind of listener."""

    async def send_back(self, message: MessageExt, delay_level: int) -> bool:
        """For a concurrent listener: the broker delivers the message again after a delay level, or moves it to the dead
        letters. False if that could not be arranged."""
        max_times = concurrent_reconsume_limit(self._max_reconsume_times)
        request = ConsumerSendMsgBack(
            offset=message.commit_log_offset,
            group=self._group,
            delay_level=delay_level,
            origin_msg_id=message.message_id,
            origin_topic=self._namespace.wrap(message.topic),
            max_reconsume_times=max_times,
            broker_name=message.broker_name or None,
        )
        try:
            routes = self._routes
            name = message.broker_name
            address = routes.master(name) if name else routes.vip(message.store_host)
            if address is None:
                raise RouteNotFound(f"Broker[{name}] master node does not exist")
            await self._connections.call(address, request, timeout_seconds=SEND_BACK_TIMEOUT_MS / 1000)
        except ClientError as error:
            _log.warning("%s could not send %r back: %s", self._group, message, error)
            return await self._send_copy(message, max_times)
        return True

    async def send_to_dead_letters(self, message: MessageExt) -> bool:
        """For an ordered listener: send a message without tries left to the retry topic, from where the broker moves it
        to the dead letters. False if that failed."""
        return await self._send_copy(message, ordered_reconsume_limit(self._max_reconsume_times))

    async def _send_copy(self, message: MessageExt, max_times: int) -> bool:
        """Send a copy to the retry topic of the group; False if that failed."""
        properties = retry_properties(
            message.properties,
            topic=self._namespace.wrap(message.topic),
            message_id=message.message_id,
            reconsume_times=message.reconsume_times,
            max_reconsume_times=max_times,
        )
        copy = Message(retry_topic(self._group), message.body, flag=message.flag)
        try:
            sender = self._sender
            due = sender.due_in(sender.settings.send_msg_timeout)
            await sender.send(sender.prepare(copy, properties), due, attempts=INNER_SEND_ATTEMPTS)
        except (ClientError, ProtocolError) as error:
            _log.error("%s could not re-send %r: %s", self._group, message, error)
            return False
        return True
