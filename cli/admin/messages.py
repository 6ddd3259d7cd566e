"""`pocketmq admin`: find, resend, send and print messages. The calls are those of `client/admin/messages.py`.

As in mqadmin, a query describes the messages on standard output and writes each body to a file below
/tmp/rocketmq/msgbodys. Every user of the machine may have laid a link below /tmp before, so folders there must be ours
and a file must be no link.
"""

import codecs
import os
import stat
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from click import echo
from pocketmq.client import (
    AdminClient,
    ClientError,
    MessageExt,
    MessageNotFound,
    MessageQueue,
    Producer,
    SendResult,
)
from pocketmq.client.admin.messages import BY_KEY, BY_TAG, LONG_MAX, MAX_COUNT, UNIQUE_KEY_COUNT, TraceView
from pocketmq.client.clock import wall_ms
from pocketmq.client.hooks.trace_records import TraceType
from pocketmq.client.values.results import PullStatus
from pocketmq.protocol.bodies.client import ConsumeType
from pocketmq.protocol.message import flags
from pocketmq.protocol.message.topics import TRACE_TOPIC

from ..mistakes import printable
from .options import Options
from .texts import (
    file_name,
    java,
    members,
    members_text,
    message_text,
    properties_text,
    queue_text,
    row,
    second_text,
    time_text,
)

SHARED: Final = Path("/tmp/rocketmq")


def write_file(path: Path, data: bytes) -> None:
    """Write a file and make its folders. Raises OSError, also for a folder of another user."""
    for folder in reversed(path.parents):
        if folder.is_relative_to(SHARED):
            _make_own(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)


def _make_own(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise PermissionError(f"{folder} is a link, or belongs to another user") from None


BODIES: Final = SHARED / "msgbodys"
HOUR_MS: Final = 3_600_000
AROUND_MS: Final = 36 * HOUR_MS
"""How far from now to look for a message by its unique id."""
NOT_FOUND: Final = "query message by key finished, but no message."


async def query_msg_by_id(admin: AdminClient, given: Options) -> None:
    topic = given.required("topic")
    ids = [one for one in given.required("msgId").split(",") if one.strip()]
    group, client_id = given.text("consumerGroup"), given.text("clientId")
    charset = charset_of(given, "bodyFormat")
    for message_id in ids:
        if group is not None and client_id is not None:
            await _push(admin, group, client_id, topic, message_id)
        elif given.text("sendMessage") is None:
            message = await admin.message(topic, message_id)
            await show_message(admin, message, charset)
        elif given.boolean("sendMessage"):
            echo(f"prepare resend msg. originalMsgId={message_id}", nl=False)
            result = await admin.resend(topic, message_id, unit_name=given.text("unitName"))
            echo(send_result_text(result), nl=False)


async def query_msg_by_key(admin: AdminClient, given: Options) -> None:
    topic, key = given.required("topic"), given.required("msgKey")
    key_type = given.text("keyType") or BY_KEY
    if key_type not in (BY_KEY, BY_TAG):
        raise ClientError("index type error, just support K for keys or T for tags")
    found = await admin.messages_by_key(
        topic,
        key,
        max_count=given.number("maxNum", MAX_COUNT),
        begin_ms=given.number("beginTimestamp", 0),
        end_ms=given.number("endTimestamp", LONG_MAX),
        key_type=key_type,
        last_key=given.text("lastKey"),
        route_topic=given.text("cluster"),
    )
    if not found:
        raise MessageNotFound(NOT_FOUND)
    echo(row("%-50s %4s %40s %-200s", "#Message ID", "#QID", "#Offset", "#IndexKey"))
    for one in found:
        hour = one.store_timestamp // HOUR_MS * HOUR_MS
        index_key = f"{hour}@{topic}@{key_type}@{key}@{one.message_id}@{one.commit_log_offset}"
        echo(row("%-50s %4d %40d %-200s", one.message_id, one.queue_id, one.queue_offset, index_key))


async def query_msg_by_unique_key(admin: AdminClient, given: Options) -> None:
    topic, message_id = given.required("topic"), given.required("msgId")
    group, client_id = given.text("consumerGroup"), given.text("clientId")
    if group is not None and client_id is not None:
        await _push(admin, group, client_id, topic, message_id)
        return
    begin_ms, end_ms = wall_ms() - AROUND_MS, wall_ms() + AROUND_MS
    if given.text("startTime") and given.text("endTime"):
        begin_ms, end_ms = given.number("startTime", 0), given.number("endTime", LONG_MAX)
    found = await admin.messages_by_unique_key(
        topic,
        message_id,
        max_count=UNIQUE_KEY_COUNT,
        begin_ms=begin_ms,
        end_ms=end_ms,
        route_topic=given.text("cluster"),
    )
    if not found:
        raise MessageNotFound(NOT_FOUND)
    for index, one in enumerate(found if given.flag("showAll") else found[:1]):
        _describe(one, _write_body(one, f"_{index}" if index else ""))
        await _show_track(admin, one, end="")


async def query_msg_by_offset(admin: AdminClient, given: Options) -> None:
    topic, charset = given.required("topic"), charset_of(given, "bodyFormat")
    route_topic = given.text("routeTopic")
    if route_topic is not None and route_topic != topic:
        await admin.queues(route_topic)  # so that its brokers are known
    queue = MessageQueue(topic, given.required("brokerName"), given.number("queueId", 0))
    message = await admin.message_at(queue, given.number("offset", 0))
    if message is not None:
        await show_message(admin, message, charset)


async def query_msg_trace_by_id(admin: AdminClient, given: Options) -> None:
    views = await admin.trace(
        given.required("msgId"),
        trace_topic=given.text("traceTopic") or TRACE_TOPIC,
        begin_ms=given.number("beginTimestamp", 0),
        end_ms=given.number("endTimestamp", LONG_MAX),
        max_count=given.number("maxNum", MAX_COUNT),
    )
    if not views:
        raise MessageNotFound(NOT_FOUND)
    for view in views:
        if view.kind is TraceType.PUB:
            _show_trace("Pub", "#ProducerGroup", "#SendTime", [view])
    groups = dict.fromkeys(view.group for view in views if view.kind is TraceType.SUB_AFTER)
    for group in groups:
        own = [view for view in views if view.kind is TraceType.SUB_AFTER and view.group == group]
        _show_trace("Sub", "#ConsumerGroup", "#ConsumerTime", own)


async def send_message(admin: AdminClient, given: Options) -> None:
    topic, broker_name = given.required("topic"), given.text("broker")
    if given.text("qid") is not None and broker_name is None:
        raise ClientError("Broker name must be set if the queue is chosen!")
    queue_id = given.number("qid", -1)
    queue = MessageQueue(topic, broker_name, queue_id) if broker_name is not None and queue_id >= 0 else None
    is_traced = given.boolean("msgTraceEnable")
    async with Producer(str(wall_ms()), **given.client, enable_trace=is_traced) as producer:
        result = await producer.send(
            topic,
            given.required("body").encode(),
            tags=given.text("tags") or "",
            keys=given.text("key") or "",
            queue=queue,
        )
    layout = "%-32s  %-4s  %-20s    %s"
    echo(row(layout, "#Broker Name", "#QID", "#Send Result", "#MsgId"))
    place = (result.queue.broker_name, result.queue.queue_id)
    echo(row(layout, *place, result.status.name, result.message_id))


# -- shared with other files of commands


def charset_of(given: Options, name: str) -> str | None:
    """The name of a character set that Python knows; `None` if none was given."""
    charset = given.text(name)
    if charset is None:
        return None
    try:
        return codecs.lookup(charset).name
    except LookupError:
        raise ClientError(f"unknown character set {charset!r:.60}") from None


def send_result_text(result: SendResult) -> str:
    return (
        f"SendResult [sendStatus={result.status.name}, msgId={result.message_id}, "
        f"offsetMsgId={result.offset_message_id}, messageQueue={queue_text(result.queue)}, "
        f"queueOffset={result.queue_offset}, recallHandle={java(result.recall_handle)}]"
    )


async def show_message(admin: AdminClient, message: MessageExt, charset: str | None = None) -> None:
    """Prints a message, the file of its body, and which groups consumed it."""
    path = _write_body(message, "")
    echo(row("%-20s %s", "OffsetID:", message.offset_message_id))
    _describe(message, path)
    if charset is not None:
        echo(row("%-20s %s", "Message Body:", printable(message.body.decode(charset, "replace"))))
    await _show_track(admin, message, end="\n")


# -- parts


def _describe(message: MessageExt, path: Path) -> None:
    for name, value in (
        ("Topic:", message.topic),
        ("Tags:", f"[{java(message.tags or None)}]"),
        ("Keys:", f"[{java(message.keys or None)}]"),
        ("Queue ID:", message.queue_id),
        ("Queue Offset:", message.queue_offset),
        ("CommitLog Offset:", message.commit_log_offset),
        ("Reconsume Times:", message.reconsume_times),
        ("Born Timestamp:", time_text(message.born_timestamp)),
        ("Store Timestamp:", time_text(message.store_timestamp)),
        ("Born Host:", message.born_host),
        ("Store Host:", message.store_host),
        ("System Flag:", message.record.sys_flag & ~flags.COMPRESSED),
        ("Properties:", properties_text(message.properties)),
        ("Message Body Path:", str(path)),
    ):
        echo(printable(row("%-20s %s", name, value)))


def _write_body(message: MessageExt, suffix: str) -> Path:
    path = BODIES / file_name(message.message_id + suffix)
    try:
        write_file(path, message.body)
    except OSError as error:
        raise ClientError(f"cannot write the body to {path}: {error}") from error
    return path


async def _show_track(admin: AdminClient, message: MessageExt, *, end: str) -> None:
    try:
        tracks = await admin.message_track(message)
    except ClientError as error:
        echo(f"pocketmq: cannot find out which groups consumed it: {error}", err=True)
        return
    if not tracks:
        echo("\n\nWARN: No Consumer", nl=False)
        return
    echo("\n")
    for track in tracks:
        echo(
            f"MessageTrack [consumerGroup={track.group}, trackType={track.track_type}, "
            f"exceptionDesc={java(track.reason)}]{end}",
            nl=False,
        )


async def _push(admin: AdminClient, group: str, client_id: str, topic: str, message_id: str) -> None:
    """Have a push consumer handle a message now."""
    info = await admin.consumer_running_info(group, client_id)
    if info.properties.get("PROP_CONSUME_TYPE") != ConsumeType.CONSUME_PASSIVELY:
        raise ClientError(f"this {client_id} client is not push consumer ,not support direct push")
    result = await admin.consume_directly(group, client_id, topic, message_id)
    echo(f"ConsumeMessageDirectlyResult [{members_text(members(result))}]", nl=False)


def _show_trace(kind: str, group_head: str, time_head: str, views: list[TraceView]) -> None:
    layout = "%-10s %-20s %-20s %-20s %-10s %-10s"
    echo(row(layout, "#Type", group_head, "#ClientHost", time_head, "#CostTimes", "#Status"))
    for view in views:
        status = "success" if view.is_success else "failed"
        cells = (view.group, view.client_host, second_text(view.timestamp), f"{view.cost_ms}ms", status)
        echo(row(layout, kind, *cells))
    echo()


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
