"""Batches: several messages in one request (320, or 310 with its batch flag), stored all or none.

Mirrors `SendMessageProcessor.sendBatchMessage`. A single message: `send_handlers.py`.
"""

from typing import Final

from pocketmq.core.properties import BUCKETS, read_values, stored_text
from pocketmq.core.records import Head, Message
from pocketmq.core.sends import Send
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.batch import BatchElement, decode_batch, encode_batch, is_storable
from pocketmq.protocol.message.topics import MAX_TOPIC_LENGTH, is_retry_topic
from pocketmq.protocol.wire.command import RawBody
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import PutStatus

from ..errors import Refusal
from ..state.refusals import refusal_of
from .decision import Decision
from .send_checks import is_delay
from .sending import Sending

_DELAY: Final = (names.DELAY,)


def batch_message(sending: Sending, decision: Decision, send: Send, head: Head) -> Message:
    """The messages of a batch as one to append. Raises `Refusal`,
    in the 4.9 line BodyError for one that cannot be read."""
    topic, body = decision.request.topic, send.body
    if len(topic) > MAX_TOPIC_LENGTH:
        raise Refusal(ResponseCode.MESSAGE_ILLEGAL, f"message topic length too long {len(topic)}")
    if sending.is_5 and is_retry_topic(topic):
        raise Refusal(ResponseCode.MESSAGE_ILLEGAL, f"batch request does not support retry group {topic}")
    if (
        len(body) > sending.config.store.max_message_size
        or flags.transaction_type(decision.request.sys_flag) != flags.TRANSACTION_NONE
        or (names.DELAY in decision.special and is_delay(read_values(send.properties, (), _DELAY)[0]))
        or not is_storable(body)
    ):
        raise refusal_of(sending.config, PutStatus.MESSAGE_ILLEGAL)
    elements: RawBody = body if sending.is_5 else _with_shared(sending, body, send.properties)
    return head, send.queue_id, elements, None, send.born_timestamp, 0, None


def _with_shared(sending: Sending, body: RawBody, text: bytes) -> bytes:
    """The 4.9 line adds the batch's own properties to each message, 5.x stores each message as it was sent."""
    changes = (names.CLUSTER, sending.config.broker_cluster_name)
    added = stored_text(text, changes, BUCKETS[False], False)
    elements = []
    for element in decode_batch(body):
        own = bytes(element.properties)
        separator = b"" if not own or own.endswith(b"\x02") else b"\x02"
        elements.append(BatchElement(element.flag, element.body, own + separator + added))
    return encode_batch(elements)
