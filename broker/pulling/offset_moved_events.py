"""The 4.9 line writes down every pull whose offset it had to correct: one message in OFFSET_MOVED_EVENT, queue 0.

Its tag and its key are the consumer group, its body says which queue, which offset was asked for and which was
answered. 5.x has the same method and no longer calls it. Mirrors `PullMessageProcessor.generateOffsetMovedEvent`.
"""

from pocketmq.protocol.bodies.offsets import OffsetMovedEvent
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import OFFSET_MOVED_TOPIC
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.store import NewMessage

from ..storing.stored_properties import stored_properties
from .pulling import Pulling


def write_offset_moved(pulling: Pulling, request: PullMessage, new_offset: int) -> None:
    """Store the event. Nobody waits for it, and a store that does not take it is no reason to refuse the pull."""
    config, group = pulling.config, request.consumer_group
    properties = {names.TAGS: group, names.DELAY: "0", names.KEYS: group}
    event = OffsetMovedEvent(
        consumer_group=group,
        message_queue=MessageQueue(request.topic, config.broker_name, request.queue_id),
        offset_request=request.queue_offset,
        offset_new=new_offset,
    )
    pulling.store.append(
        NewMessage(
            topic=OFFSET_MOVED_TOPIC,
            queue_id=0,
            body=event.encode(),
            properties=stored_properties(properties, is_5=config.is_5),
            property_map=properties,
            born_timestamp=pulling.clock.now_ms(),
            born_host=pulling.identity.store_host,
            store_host=pulling.identity.store_host,
        )
    )
