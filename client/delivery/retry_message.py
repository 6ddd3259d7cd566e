"""The copy of a failed message that is sent to the group's retry topic as an ordinary message (`send_back.py`).

A concurrent consumer sends it if the broker cannot be asked to send the message back (36), an ordered one for a
message without tries left. The broker moves it to the dead letters when RECONSUME_TIME exceeds MAX_RECONSUME_TIMES
(4.9 brokers: reaches it); the producer moves both from the properties into the header. Official:
DefaultMQPushConsumerImpl.sendMessageBackAsNormalMessage, ConsumeMessageOrderlyService.sendMessageBack.
"""

from collections.abc import Mapping
from typing import Final

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.topics import pop_retry_topic, retry_topic

FIRST_RETRY_DELAY_LEVEL: Final = 3
"""10 s; each further try waits one level more."""


def retry_delay_level(reconsume_times: int) -> int:
    """Delay level of the next try after this many; the broker caps it at its last level."""
    return FIRST_RETRY_DELAY_LEVEL + reconsume_times


def retry_properties(
    properties: Mapping[str, str],
    *,
    topic: str,
    message_id: str,
    reconsume_times: int,
    max_reconsume_times: int,
) -> dict[str, str]:
    """Properties of the message that goes to `%RETRY%group`; body and flag stay as they are.

    `properties`, `topic`, `message_id` and `reconsume_times` are the failed message's. 4.9 ordered consumers write
    the number of tries so far, not one more.
    """
    made = dict(properties)
    made.pop(names.TRAN_MSG, None)
    origin = made.get(names.ORIGIN_MESSAGE_ID, "")
    if not origin.strip():
        made[names.ORIGIN_MESSAGE_ID] = message_id
    made[names.RETRY_TOPIC] = topic
    made[names.RECONSUME_TIME] = str(reconsume_times + 1)
    made[names.MAX_RECONSUME_TIMES] = str(max_reconsume_times)
    made[names.DELAY] = str(retry_delay_level(reconsume_times))
    return made


def topic_for_listener(topic: str, properties: Mapping[str, str], group: str) -> str:
    """The topic a listener sees: the original one for a message from the group's retry topics, else as it is.

    Official resetRetryAndNamespace and (5.x, pop) tryResetPopRetryTopic.
    """
    if topic == retry_topic(group):
        return properties.get(names.RETRY_TOPIC, topic)
    return topic.removeprefix(pop_retry_topic("", group)) or topic
