"""A message the listener failed on goes back to the broker, which delivers it again later or files it away.

First the broker is asked to do it (36); where that fails the message is sent to the group's retry topic as a new one.
Mirrors `DefaultMQPushConsumerImpl.sendMessageBack`.
"""

import logging
from typing import TYPE_CHECKING, Final

from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.topics import retry_topic
from pocketmq.protocol.requests.send import ConsumerSendMsgBack

from ..errors import ClientError, RouteNotFound
from ..producing.sender import Sender
from ..values.message import Message, MessageExt
from ..values.namespaces import Namespace
from .concurrent_results import SEND_BACK_TIMEOUT_MS
from .retry_message import retry_properties

if TYPE_CHECKING:
    from ..instance.instance import ClientInstance

_log = logging.getLogger(__name__)

INNER_SEND_ATTEMPTS: Final = 3


class SendBack:
    """For one group. `sender` is the inner producer's."""

    def __init__(self, instance: "ClientInstance", sender: Sender, group: str, namespace: Namespace) -> None:
        self._instance = instance
        self._sender = sender
        self._group = group
        self._namespace = namespace

    async def send_back(self, message: MessageExt, delay_level: int, max_times: int) -> bool:
        """Let the broker deliver the message again after a delay level; False where neither way worked."""
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
            routes = self._instance.routes
            name = message.broker_name
            address = routes.master(name) if name else routes.vip(message.store_host)
            if address is None:
                raise RouteNotFound(f"Broker[{name}] master node does not exist")
            await self._instance.connections.call(
                address, request, timeout_seconds=SEND_BACK_TIMEOUT_MS / 1000
            )
        except ClientError as error:
            _log.warning("%s could not send %r back: %s", self._group, message, error)
            return await self.send_as_normal(message, max_times)
        return True

    async def send_as_normal(self, message: MessageExt, max_times: int) -> bool:
        """Send a copy to the retry topic of the group; False where that failed."""
        properties = retry_properties(
            message.properties,
            topic=self._namespace.wrap(message.topic),
            message_id=message.message_id,
            reconsume_times=message.reconsume_times,
            max_reconsume_times=max_times,
        )
        copy = Message(retry_topic(self._group), message.body, flag=message.flag)
        try:
            outgoing = self._sender.prepare(copy, properties)
            await self._sender.send(
                outgoing, self._sender.settings.send_msg_timeout, attempts=INNER_SEND_ATTEMPTS
            )
        except (ClientError, ProtocolError) as error:
            _log.error("%s could not re-send %r: %s", self._group, message, error)
            return False
        return True
