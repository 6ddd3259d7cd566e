"""Sends failed messages back to the broker, which delivers them again later or moves them to the dead letters.

First the broker is asked to do it (36); if that fails, or for an ordered listener, a copy is sent to the group's retry
topic as an ordinary message. The broker moves it to the dead letters when RECONSUME_TIME exceeds MAX_RECONSUME_TIMES
(4.9 brokers: reaches it); the producer moves both from the properties into the header. Mirrors
`DefaultMQPushConsumerImpl.sendMessageBack`, `sendMessageBackAsNormalMessage` and
`ConsumeMessageOrderlyService.sendMessageBack`.
"""

import logging
from collections.abc import Mapping
from typing import Final

from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.topics import pop_retry_topic, retry_topic
from pocketmq.protocol.requests.send import ConsumerSendMsgBack

from ..errors import ClientError, RouteNotFound
from ..instance.groups import INNER_PRODUCER_GROUP
from ..producing.sender import Sender
from ..rebalancing.consumer_context import ConsumerContext
from ..settings.checks import OFF
from ..settings.consumer_settings import PushConsumerSettings
from ..settings.producer_settings import ProducerSettings
from ..values.message import Message, MessageExt
from ..values.namespaces import Namespace

_log = logging.getLogger(__name__)

INNER_SEND_ATTEMPTS: Final = 3
SEND_BACK_TIMEOUT_MS: Final = 5_000
DEFAULT_MAX_RECONSUME_TIMES: Final = 16
NO_LIMIT: Final = 2**31 - 1


class SendBack:
    """Sends back the messages of one group."""

    def __init__(self, context: ConsumerContext[PushConsumerSettings]) -> None:
        instance, settings = context.instance, context.settings
        self._routes, self._connections = instance.routes, instance.connections
        self._sender = Sender(instance, INNER_PRODUCER_GROUP, ProducerSettings())
        self._group = context.group
        self._namespace = Namespace(settings.namespace)
        self._max_reconsume_times = settings.max_reconsume_times
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
        properties = retry_properties(message, self._namespace.wrap(message.topic), max_times)
        copy = Message(retry_topic(self._group), message.body, flag=message.flag)
        try:
            sender = self._sender
            due = sender.due_in(sender.settings.send_msg_timeout)
            await sender.send(sender.prepare(copy, properties), due, attempts=INNER_SEND_ATTEMPTS)
        except (ClientError, ProtocolError) as error:
            _log.error("%s could not re-send %r: %s", self._group, message, error)
            return False
        return True


def concurrent_reconsume_limit(setting: int) -> int:
    """Tries after which the broker moves a message to the dead letters: `max_reconsume_times`, 16 if it is not set."""
    return DEFAULT_MAX_RECONSUME_TIMES if setting == OFF else setting


def ordered_reconsume_limit(setting: int) -> int:
    """Tries of an ordered consumer: `max_reconsume_times`, without limit if it is not set."""
    return NO_LIMIT if setting == OFF else setting


FIRST_RETRY_DELAY_LEVEL: Final = 3
"""10 s; each further try waits one level more, up to the broker's last one."""


def retry_properties(message: MessageExt, topic: str, max_reconsume_times: int) -> dict[str, str]:
    """Properties of the copy of a failed message of this topic that goes to `%RETRY%group`; body and flag stay as they
    are. 4.9 ordered consumers write the number of tries so far, not one more."""
    made = dict(message.properties)
    made.pop(names.TRAN_MSG, None)
    origin = made.get(names.ORIGIN_MESSAGE_ID, "")
    if not origin.strip():
        made[names.ORIGIN_MESSAGE_ID] = message.message_id
    made[names.RETRY_TOPIC] = topic
    made[names.RECONSUME_TIME] = str(message.reconsume_times + 1)
    made[names.MAX_RECONSUME_TIMES] = str(max_reconsume_times)
    made[names.DELAY] = str(FIRST_RETRY_DELAY_LEVEL + message.reconsume_times)
    return made


def topic_for_listener(topic: str, properties: Mapping[str, str], group: str) -> str:
    """The topic a listener sees: the original one for a message from the group's retry topics, else as it is.

    Official resetRetryAndNamespace and (5.x, pop) tryResetPopRetryTopic.
    """
    if topic == retry_topic(group):
        return properties.get(names.RETRY_TOPIC, topic)
    return topic.removeprefix(pop_retry_topic("", group)) or topic
