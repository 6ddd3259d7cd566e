"""A message about each pull whose offset the broker corrected (4.9 line), stored in OFFSET_MOVED_EVENT, queue 0.

Its tag and its key are the consumer group; its body names the queue, the requested offset and the answered offset. 5.x
has the same method but no longer calls it. Mirrors `PullMessageProcessor.generateOffsetMovedEvent`.
"""

from pocketmq.protocol.bodies.offsets import OffsetMovedEvent
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import OFFSET_MOVED_TOPIC
from pocketmq.protocol.requests.pull import PullMessage

from ..storing.message_copies import own_message
from .pulling import Pulling


def write_offset_moved(pulling: Pulling, request: PullMessage, new_offset: int) -> None:
    """Store the event. The pull is answered whether or not the store accepts it."""
    config, group = pulling.config, request.consumer_group
    properties = {names.TAGS: group, names.DELAY: "0", names.KEYS: group}
    event = OffsetMovedEvent(
        consumer_group=group,
        message_queue=MessageQueue(request.topic, config.broker_name, request.queue_id),
        offset_request=request.queue_offset,
        offset_new=new_offset,
    )
    pulling.store.append(
        own_message(
            OFFSET_MOVED_TOPIC,
            0,
            event.encode(),
            properties,
            now_ms=pulling.clock.now_ms(),
            store_host=pulling.identity.store_host,
        )
    )
