"""Finds single messages: by key (12) or by log position (33); and the units of a consume queue (321).

The answer contains records as they are stored, one after the other, as views of the log. 12 uses the store's
`key_index.py`. Mirrors `QueryMessageProcessor` and `AdminBrokerProcessor.queryConsumeQueue`.
"""

from typing import Final

from pocketmq.protocol.bodies.offsets import ConsumeQueueData, QueryConsumeQueueResponseBody
from pocketmq.protocol.message.record import measure_record
from pocketmq.protocol.requests.pull import (
    QueryConsumeQueue,
    QueryMessage,
    QueryMessageReply,
    ViewMessageById,
)
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store.lookup.queue_unit import UNIT

from ..broker import Broker
from ..errors import Refusal
from ..network.dispatch import Answer, handles
from ..state.part import UNSET_REMARK
from ..time.slices import encode_json, in_slices

NOT_FOUND: Final = "can not find message, maybe time range not correct"
MAX_ENTRIES: Final = 100_000
"""An answer with this many units is about 9 MB of JSON and fits into a frame; the official broker has no limit."""


@handles(QueryMessage)
def query_message(broker: Broker, request: QueryMessage) -> Answer:
    """Messages by key, unique id or (5.x) tag, stored between two times; the header has the newest time of the index.

    The index compares hashes of keys: the client drops messages whose key only has the same hash.
    """
    config = broker.config.store
    max_num = config.default_query_max_num if request.unique_key_query else request.max_num
    if max_num < 0:
        raise Refusal(ResponseCode.SYSTEM_ERROR, f"maxNum must not be negative, got {max_num}")
    # Tags, else keys, which include unique ids. 4.x has no types.
    by_tag = broker.is_5 and not request.unique_key_query and request.index_type == "T"
    # The answer to 12 always carries the position of the index, so "not found" is not a Refusal.
    result = broker.store.query(
        request.topic,
        request.key,
        max_num,
        request.begin_timestamp,
        request.end_timestamp,
        "T" if by_tag else "K",
    )
    if not result.views:
        empty = QueryMessageReply(index_last_update_timestamp=0, index_last_update_position=0)
        return Answer(code=ResponseCode.QUERY_NOT_FOUND, remark=NOT_FOUND, reply=empty)
    reply = QueryMessageReply(
        index_last_update_timestamp=result.index_last_update_timestamp,
        index_last_update_position=result.index_last_update_position,
    )
    return Answer(reply=reply, body=result.views)


@handles(ViewMessageById)
def view_message_by_id(broker: Broker, request: ViewMessageById) -> Answer:
    """The record at a log position; its topic is not compared with `topic`."""
    record = broker.store.read_record(request.offset) if request.offset >= 0 else None
    if record is None or measure_record(record, 0, len(record), check_crc=False) != len(record):
        remark = f"can not find message by the offset, {request.offset}"
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
    return Answer(body=record)


@handles(QueryConsumeQueue)
async def query_consume_queue(broker: Broker, request: QueryConsumeQueue) -> Answer:
    """Units of a queue from `index` on, at most up to the end of their file."""
    topic, queue_id, group = request.topic, request.queue_id, request.consumer_group
    queue = broker.store.consume_queue(topic, queue_id) if topic else None
    if topic is None or queue is None:
        raise Refusal(ResponseCode.SYSTEM_ERROR, f"{queue_id}@{topic} is not exist!")
    if not queue.min_offset <= request.index < queue.max_offset:
        return Answer(remark=f"Index {request.index} of {queue_id}@{topic} is not exist!")
    subscription = filter_data = None
    if group is not None:
        online = broker.membership.consumers.get(group)
        subscription = None if online is None else online.subscriptions.get(topic)
        # Only SQL subscriptions have filter data; Java writes the missing one as the text "null".
        filter_data = f"{group}@{topic} is not online!" if subscription is None else "null"
    count = min(max(request.count, 0), MAX_ENTRIES)
    units = bytes((queue.units_from(request.index) or memoryview(b""))[: count * UNIT.size])
    async with broker.reports:
        entries = [
            ConsumeQueueData(physic_offset=position, physic_size=size, tags_code=tags_code)
            async for position, size, tags_code in in_slices(UNIT.iter_unpack(units))
        ]
        body = QueryConsumeQueueResponseBody(
            subscription_data=subscription,
            filter_data=filter_data,
            queue_data=entries,
            max_queue_index=queue.max_offset,
            min_queue_index=queue.min_offset,
        )
        return Answer(remark=UNSET_REMARK, body=await encode_json(body, len(entries)))
