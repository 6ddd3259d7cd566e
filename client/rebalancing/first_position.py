"""Where a consumer starts in a queue, if its group has an offset there and if it has none.

The caller (`held_queues.py`) reads the stored offset; a lite pull consumer, from memory first.

    stored offset   LAST (and the three        FIRST    TIMESTAMP
                    deprecated values)
    n >= 0          n                          n        n
    -1 none         max; 0 of a retry topic    0        search(time); max of a retry topic
    -2 failed, -3   FirstPositionUnknown       same     same

4.9 clients differ in two points: any answer but success counts as -1, so that an error of the broker moves a group to
the end; and -2 gives -1, which an ordered consumer uses as a position. FIRST is the constant 0: the broker corrects
it to the queue's minimum (`pulling/queue_loop.py`). The broker decides too: a new group reads a young queue from 0,
whatever the setting says (`broker/first_position/`).
Official class: RebalancePushImpl.computePullFromWhereWithException.
"""

from pocketmq.protocol.bodies.client import ConsumeFromWhere
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import FirstPositionUnknown
from ..instance.instance import ClientInstance
from ..offsets.offset_store import NO_OFFSET
from ..offsets.queue_offsets import max_offset, search_offset
from ..settings.timestamps import parse_timestamp


async def first_position(
    instance: ClientInstance,
    queue: MessageQueue,
    stored_offset: int,
    where: ConsumeFromWhere,
    consume_timestamp: str,
) -> int:
    """Where to begin in a queue. FirstPositionUnknown, or what asking the broker raises.

    `stored_offset` is the result of reading the store: an offset, NO_OFFSET or OFFSET_UNREADABLE.
    """
    if stored_offset >= 0:
        return stored_offset
    from_first = where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    by_time = where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP
    if stored_offset != NO_OFFSET:
        what = "offset" if from_first or by_time else "consume offset"
        raise FirstPositionUnknown(ResponseCode.QUERY_NOT_FOUND, f"Failed to query {what} from offset store")
    is_retry = is_retry_topic(queue.topic)
    if from_first or (is_retry and not by_time):
        return 0
    if by_time and not is_retry:
        offset = await search_offset(instance, queue, parse_timestamp(consume_timestamp))
    else:
        offset = await max_offset(instance, queue)
    if offset < 0:
        raise FirstPositionUnknown(ResponseCode.SYSTEM_ERROR, f"Found unexpected result {offset}")
    return offset


def pop_init_mode(where: ConsumeFromWhere) -> int:
    """Where a pop consumer of a new group starts: 0 minimum, 1 maximum (official getConsumeInitMode)."""
    return 0 if where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET else 1
