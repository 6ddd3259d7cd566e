"""`pocketmq admin`: prints queues from one end to the other. Nothing is committed."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from click import echo
from pocketmq.client import AdminClient, ClientError, MessageExt, MessageQueue
from pocketmq.client.admin.calls import TOOLS_GROUP
from pocketmq.client.clock import wall_ms
from pocketmq.client.values.results import PullStatus

from .given import Given
from .messages import charset_of
from .texts import message_text, queue_text, row

UTF_8: Final = "utf-8"
CONSUME_COUNT: Final = 128
PULL_MAX: Final = 32


async def print_msg(admin: AdminClient, given: Given) -> None:
    topic, parent = given.needed("topic"), given.text("lmqParentTopic")
    charset = charset_of(given, "charsetName") or UTF_8
    shows_body = given.truth("printBody", default=True)
    tags = given.text("subExpression") or "*"
    for known in await admin.queues(parent or topic):
        queue = MessageQueue(topic, known.broker_name, known.queue_id)
        begin, end = await _span(admin, given, queue)
        echo(f"minOffset={begin}, maxOffset={end}, {queue_text(queue)}")
        async for result in admin.read(queue, begin, end, tags=tags):
            place = f"status={result.status.value}, offset={result.next_offset}"
            if result.status is PullStatus.FOUND:
                _show(result.messages, charset, shows_body=shows_body)
            elif result.status is PullStatus.NO_MATCHED_MSG:
                echo(f"{queue_text(queue)} no matched msg. {place}")
            else:
                echo(f"{queue_text(queue)} print msg finished. {place}")
        echo("-" * 56)


async def print_msg_by_queue(admin: AdminClient, given: Given) -> None:
    topic = given.needed("topic")
    charset = charset_of(given, "charsetName") or UTF_8
    queue = MessageQueue(topic, given.needed("brokerName"), given.number("queueId", 0))
    await admin.queues(topic)  # so that its brokers are known
    begin, end = await _span(admin, given, queue)
    counts: Counter[str] = Counter()
    async for result in admin.read(queue, begin, end, tags=given.text("subExpression") or "*"):
        if result.status is not PullStatus.FOUND:
            break
        counts.update(one.tags for one in result.messages if one.tags.strip())
        if given.truth("print msg"):
            _show(result.messages, charset, shows_body=given.truth("printBody"))
    if given.truth("calculate"):
        for tag, count in counts.most_common():
            echo(row("Tag: %-30s Count: %s", tag, count))


async def consume_message(admin: AdminClient, given: Given) -> None:
    topic, broker_name = given.needed("topic"), given.text("brokerName")
    count = given.number("MessageNumber", CONSUME_COUNT)
    if count <= 0:
        raise ClientError("Please input a positive messageNumber!")
    if given.text("queueId") is not None and broker_name is None:
        raise ClientError("Please set the brokerName before queueId!")
    if given.text("offset") is not None and given.text("queueId") is None:
        raise ClientError("Please set queueId before offset!")
    begin_ms, end_ms = _times(given)
    group = given.text("consumerGroup") or TOOLS_GROUP
    known = await admin.queues(topic)
    if broker_name is not None and given.text("queueId") is not None:
        queue = MessageQueue(topic, broker_name, given.number("queueId", 0))
        begin, end = await _span_of_times(admin, queue, begin_ms, end_ms)
        await _consume_one(admin, group, queue, max(begin, given.number("offset", 0)), end, count)
        return
    left = count
    for queue in known:
        if left == 0:
            break
        begin, end = await _span_of_times(admin, queue, begin_ms, end_ms)
        if end - begin > left:
            echo(f"The older {left} message of the {queue.queue_id} queue will be provided")
            end, left = begin + left - 1, 0
        else:
            left = max(0, left - (end - begin) - 1)
        await _consume(admin, group, queue, begin, end)


# -- parts


def _show(messages: Sequence[MessageExt], charset: str, *, shows_body: bool) -> None:
    for one in messages:
        body = one.body.decode(charset, "replace") if shows_body else "NOT PRINT BODY"
        echo(f"MSGID: {one.message_id} {message_text(one)} BODY: {body}")


async def _span(admin: AdminClient, given: Given, queue: MessageQueue) -> tuple[int, int]:
    """The first offset and the end of the part to read: the whole queue, or what was stored between two times."""
    begin = await admin.min_offset(queue)
    end = await admin.max_offset(queue)
    if given.text("beginTimestamp") is not None:
        begin = await admin.search_offset(queue, given.time_ms("beginTimestamp", 0))
    if given.text("endTimestamp") is not None:
        end = await admin.search_offset(queue, given.time_ms("endTimestamp", 0))
    return begin, end


def _times(given: Given) -> tuple[int, int]:
    """Begin and end in epoch ms; 0 if not given."""
    begin_ms, end_ms = given.time_ms("beginTimestamp", 0), given.time_ms("endTimestamp", 0)
    if begin_ms > wall_ms():
        raise ClientError("Please set the beginTimestamp before now!")
    if end_ms > wall_ms():
        raise ClientError("Please set the endTimestamp before now!")
    if end_ms and begin_ms > end_ms:
        raise ClientError(
            "Please make sure that the beginTimestamp is less than or equal to the endTimestamp"
        )
    return begin_ms, end_ms


async def _span_of_times(
    admin: AdminClient, queue: MessageQueue, begin_ms: int, end_ms: int
) -> tuple[int, int]:
    begin, end = await admin.min_offset(queue), await admin.max_offset(queue)
    if begin_ms > 0:
        begin = await admin.search_offset(queue, begin_ms)
    if end_ms > 0:
        end = await admin.search_offset(queue, end_ms)
    return begin, end


async def _consume_one(
    admin: AdminClient, group: str, queue: MessageQueue, begin: int, end: int, count: int
) -> None:
    if begin > end:
        echo(f"{queue_text(queue)} no matched msg, offset={begin}")
        return
    if end - begin > count:
        echo(f"The oldler {count} message will be provided")  # the official spelling
        end = begin + count - 1
    await _consume(admin, group, queue, begin, end)


async def _consume(admin: AdminClient, group: str, queue: MessageQueue, begin: int, end: int) -> None:
    """Read up to `end`, with a pull at that offset too: at the queue's end it answers that nothing is new."""
    offset = begin
    while offset <= end:
        count = min(PULL_MAX, end - offset + 1)
        result = await admin.pull(queue, offset, max_count=count, group=group)
        offset = result.next_offset
        place = f"status={result.status.value}, offset={offset}"
        if result.status is PullStatus.FOUND:
            echo("Consume ok")
            _show(result.messages, UTF_8, shows_body=True)
        elif result.status is PullStatus.NO_MATCHED_MSG:
            echo(f"{queue_text(queue)} no matched msg. {place}")
        else:
            echo(f"{queue_text(queue)} print msg finished. {place}")
            return
