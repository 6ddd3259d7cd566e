"""A message as it is stored if nothing reroutes it: the broker's properties are added, the rest is as sent.

`send_handlers.py` stores one message with these steps; `send_plan.py` runs them once for many messages.
"""

from pocketmq.protocol.bodies.topic_config import MULTI_TAG, TopicConfig
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.requests.send import AnySend
from pocketmq.protocol.wire.command import RawBody
from pocketmq.store import NewMessage

from ..storing.stored_properties import stored_properties
from .sending import Sending


def complete(sending: Sending, properties: dict[str, str]) -> str | None:
    """Add the broker's properties to a message that is not part of a batch; returns its unique id."""
    config = sending.config
    unique_id = properties.get(names.UNIQ_KEY)
    if sending.is_5:
        properties[names.MSG_REGION] = config.region_id
        properties[names.TRACE_ON] = "true" if config.trace_on else "false"
        properties.pop(names.POP_CK, None)
        if unique_id is None:
            unique_id = properties[names.UNIQ_KEY] = sending.unique_ids.next()
    properties[names.CLUSTER] = config.broker_cluster_name
    return unique_id


def stored_text(sending: Sending, properties: dict[str, str]) -> bytes:
    """The property text of a message; in 4.9 without WAIT."""
    is_5 = sending.is_5
    if is_5 or names.WAIT not in properties:
        return stored_properties(properties, is_5=is_5)
    # The 4.9 line encodes the properties without WAIT and then adds WAIT again, which makes it the last one in its hash
    # bucket. A delayed message is encoded a second time: its text contains WAIT, at that place.
    wait = properties.pop(names.WAIT)
    stored = stored_properties(properties, is_5=is_5)
    properties[names.WAIT] = wait
    return stored


def stored_sys_flag(request: AnySend, topic_config: TopicConfig) -> int:
    """The flags of a message or batch: those of the request, and whether its topic has several tags a message."""
    return request.sys_flag | (flags.MULTI_TAGS if topic_config.topic_filter_type == MULTI_TAG else 0)


def plain_message(
    sending: Sending,
    request: AnySend,
    topic: str,
    queue_id: int,
    topic_config: TopicConfig,
    body: RawBody,
    born_host: bytes,
    properties: dict[str, str],
    text: bytes,
) -> NewMessage:
    """The message of a send. `topic` and `queue_id` may differ from those of the request; `text` is stored."""
    return NewMessage(
        topic=topic,
        queue_id=queue_id,
        body=body,
        properties=text,
        property_map=properties,
        flag=request.flag,
        sys_flag=stored_sys_flag(request, topic_config),
        born_timestamp=request.born_timestamp,
        born_host=born_host,
        store_host=sending.store_host,
        reconsume_times=request.reconsume_times or 0,
    )
