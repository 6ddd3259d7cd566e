"""`pocketmq admin`: prints queues from one end to the other. Nothing is committed."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from click import echo
from pocketmq.client import AdminClient, MessageExt, MessageQueue
from pocketmq.client.values.results import PullStatus

from ..mistakes import printable
from .messages import charset_of
from .options import Options
from .texts import message_text, queue_text, row

UTF_8: Final = "utf-8"


async def print_msg(admin: AdminClient, given: Options) -> None:
    topic, parent = given.required("topic"), given.text("lmqParentTopic")
    charset = charset_of(given, "charsetName") or UTF_8
    shows_body = given.boolean("printBody", default=True)
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


async def print_msg_by_queue(admin: AdminClient, given: Options) -> None:
    topic = given.required("topic")
    charset = charset_of(given, "charsetName") or UTF_8
    queue = MessageQueue(topic, given.required("brokerName"), given.number("queueId", 0))
    await admin.queues(topic)  # so that its brokers are known
    begin, end = await _span(admin, given, queue)
    counts: Counter[str] = Counter()
    async for result in admin.read(queue, begin, end, tags=given.text("subExpression") or "*"):
        if result.status is not PullStatus.FOUND:
            break
        counts.update(one.tags for one in result.messages if one.tags.strip())
        if given.boolean("print msg"):
            _show(result.messages, charset, shows_body=given.boolean("printBody"))
    if given.boolean("calculate"):
        for tag, count in counts.most_common():
            echo(row("Tag: %-30s Count: %s", tag, count))


# -- parts


def _show(messages: Sequence[MessageExt], charset: str, *, shows_body: bool) -> None:
    for one in messages:
        body = one.body.decode(charset, "replace") if shows_body else "NOT PRINT BODY"
        echo(printable(f"MSGID: {one.message_id} {message_text(one)} BODY: {body}"))


async def _span(admin: AdminClient, given: Options, queue: MessageQueue) -> tuple[int, int]:
    """The first offset and the end of the part to read: the whole queue, or what was stored between two times."""
    begin = await admin.min_offset(queue)
    end = await admin.max_offset(queue)
    if given.text("beginTimestamp") is not None:
        begin = await admin.search_offset(queue, given.time_ms("beginTimestamp", 0))
    if given.text("endTimestamp") is not None:
        end = await admin.search_offset(queue, given.time_ms("endTimestamp", 0))
    return begin, end
