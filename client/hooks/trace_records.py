"""Message traces as text, in the official format.

    fields of a record are separated by 0x01, each record ends with 0x02; null is a missing value

    Pub             time, region, group, topic, msgId, tags, keys, storeHost, bodyLength, cost, msgType, offsetMsgId,
                    success
    SubBefore       time, region, group, requestId, msgId, retryTimes, keys                     one for each message
    SubAfter        requestId, msgId, cost, success, keys, contextCode [, time, group]          one for each message
    EndTransaction  time, region, group, topic, msgId, tags, keys, storeHost, msgType, transactionId, state, fromCheck
    Recall          time, region, group, topic, msgId, success

Times in epoch ms, costs in ms. Time and group of a SubAfter are missing with the access channel CLOUD. Groups and
topics carry no namespace. No I/O. Mirrors `TraceDataEncoder`, `TraceContext`, `TraceBean`.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import field

from ..errors import ClientError
from ..settings.client_settings import AccessChannel
from .hooks import MessageType

FIELD_END: Final = "\x01"
RECORD_END: Final = "\x02"


class TraceType(StrEnum):
    """Which step of a message's life."""

    PUB = "Pub"
    SUB_BEFORE = "SubBefore"
    SUB_AFTER = "SubAfter"
    END_TRANSACTION = "EndTransaction"
    RECALL = "Recall"


class TraceBean(msgspec.Struct):
    """One message of a record. None is written `null`."""

    topic: str = ""
    msg_id: str = ""
    offset_msg_id: str = ""
    tags: str | None = ""
    keys: str | None = ""
    store_host: str = ""
    body_length: int = 0
    msg_type: MessageType = MessageType.NORMAL_MSG
    retry_times: int = 0
    transaction_id: str | None = None
    transaction_state: str = ""
    from_transaction_check: bool = False


class TraceContext(msgspec.Struct, kw_only=True):
    """One step of one message, or of the messages one listener call got."""

    trace_type: TraceType
    timestamp_ms: int
    region_id: str | None = ""
    group_name: str = ""
    cost_ms: int = 0
    is_success: bool = True
    request_id: str = ""
    context_code: int = 0
    access_channel: AccessChannel | None = None
    beans: list[TraceBean] = field(default_factory=list)


def encode_trace(context: TraceContext) -> str:
    """The records of one context."""
    write = _WRITERS[context.trace_type]
    return "".join(
        FIELD_END.join((context.trace_type.value, *map(_text, write(context, bean)))) + RECORD_END
        for bean in context.beans
    )


def trace_keys(context: TraceContext) -> list[str]:
    """The keys of a trace message: ids and keys of the messages it is about."""
    found: dict[str, None] = {}
    for bean in context.beans:
        found[bean.msg_id] = None
        found.update(dict.fromkeys((bean.keys or "").split(" ") if bean.keys else ()))
    return list(found)


def decode_traces(text: str) -> list[TraceContext]:
    """The records of a trace message, one context each; records of unknown types are left out. ClientError for a
    record that cannot be read."""
    contexts = []
    for record in text.split(RECORD_END):
        kind, *fields = record.split(FIELD_END)
        if kind not in _KINDS:
            continue
        try:
            contexts.append(_READERS[TraceType(kind)](fields))
        except (IndexError, ValueError) as error:
            raise ClientError(f"not a trace record: {record[:80]!r}") from error
    return contexts


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(int(value) if isinstance(value, MessageType) else value)


# -- each type's fields, written and read


def _write_pub(context: TraceContext, bean: TraceBean) -> Sequence[object]:
    return (
        *(context.timestamp_ms, context.region_id, context.group_name, bean.topic, bean.msg_id),
        *(bean.tags, bean.keys, bean.store_host, bean.body_length, context.cost_ms, bean.msg_type),
        *(bean.offset_msg_id, context.is_success),
    )


def _read_pub(fields: list[str]) -> TraceContext:
    bean = TraceBean(
        topic=fields[3],
        msg_id=fields[4],
        tags=fields[5],
        keys=fields[6],
        store_host=fields[7],
        body_length=int(fields[8]),
        msg_type=MessageType(int(fields[10])),
        offset_msg_id=fields[11] if len(fields) > 12 else "",
    )
    success = fields[12] if len(fields) > 12 else fields[11]  # clients before 4.3 wrote no offset message id
    return TraceContext(
        trace_type=TraceType.PUB,
        timestamp_ms=int(fields[0]),
        region_id=fields[1],
        group_name=fields[2],
        cost_ms=int(fields[9]),
        is_success=success == "true",
        beans=[bean],
    )


def _write_sub_before(context: TraceContext, bean: TraceBean) -> Sequence[object]:
    return (
        *(context.timestamp_ms, context.region_id, context.group_name, context.request_id),
        *(bean.msg_id, bean.retry_times, bean.keys),
    )


def _read_sub_before(fields: list[str]) -> TraceContext:
    return TraceContext(
        trace_type=TraceType.SUB_BEFORE,
        timestamp_ms=int(fields[0]),
        region_id=fields[1],
        group_name=fields[2],
        request_id=fields[3],
        beans=[TraceBean(msg_id=fields[4], retry_times=int(fields[5]), keys=fields[6])],
    )


def _write_sub_after(context: TraceContext, bean: TraceBean) -> Sequence[object]:
    fields = (
        *(context.request_id, bean.msg_id, context.cost_ms, context.is_success, bean.keys),
        context.context_code,
    )
    if context.access_channel is AccessChannel.CLOUD:
        return (*fields, "")  # the official writer ends the code like any other field
    return (*fields, context.timestamp_ms, context.group_name)


def _read_sub_after(fields: list[str]) -> TraceContext:
    has_time = len(fields) > 7
    return TraceContext(
        trace_type=TraceType.SUB_AFTER,
        request_id=fields[0],
        cost_ms=int(fields[2]),
        is_success=fields[3] == "true",
        context_code=int(fields[5]) if len(fields) > 5 else 0,
        timestamp_ms=int(fields[6]) if has_time else 0,
        group_name=fields[7] if has_time else "",
        access_channel=None if has_time else AccessChannel.CLOUD,
        beans=[TraceBean(msg_id=fields[1], keys=fields[4])],
    )


def _write_end_transaction(context: TraceContext, bean: TraceBean) -> Sequence[object]:
    return (
        *(context.timestamp_ms, context.region_id, context.group_name, bean.topic, bean.msg_id),
        *(bean.tags, bean.keys, bean.store_host, bean.msg_type, bean.transaction_id),
        *(bean.transaction_state, bean.from_transaction_check),
    )


def _read_end_transaction(fields: list[str]) -> TraceContext:
    bean = TraceBean(
        topic=fields[3],
        msg_id=fields[4],
        tags=fields[5],
        keys=fields[6],
        store_host=fields[7],
        msg_type=MessageType(int(fields[8])),
        transaction_id=fields[9],
        transaction_state=fields[10],
        from_transaction_check=fields[11] == "true",
    )
    return TraceContext(
        trace_type=TraceType.END_TRANSACTION,
        timestamp_ms=int(fields[0]),
        region_id=fields[1],
        group_name=fields[2],
        beans=[bean],
    )


def _write_recall(context: TraceContext, bean: TraceBean) -> Sequence[object]:
    return (
        *(context.timestamp_ms, context.region_id, context.group_name, bean.topic, bean.msg_id),
        context.is_success,
    )


def _read_recall(fields: list[str]) -> TraceContext:
    return TraceContext(
        trace_type=TraceType.RECALL,
        timestamp_ms=int(fields[0]),
        region_id=fields[1],
        group_name=fields[2],
        is_success=fields[5] == "true",
        beans=[TraceBean(topic=fields[3], msg_id=fields[4])],
    )


_KINDS: Final = frozenset(kind.value for kind in TraceType)
_WRITERS: Final[dict[TraceType, Callable[[TraceContext, TraceBean], Sequence[object]]]] = {
    TraceType.PUB: _write_pub,
    TraceType.SUB_BEFORE: _write_sub_before,
    TraceType.SUB_AFTER: _write_sub_after,
    TraceType.END_TRANSACTION: _write_end_transaction,
    TraceType.RECALL: _write_recall,
}
_READERS: Final[dict[TraceType, Callable[[list[str]], TraceContext]]] = {
    TraceType.PUB: _read_pub,
    TraceType.SUB_BEFORE: _read_sub_before,
    TraceType.SUB_AFTER: _read_sub_after,
    TraceType.END_TRANSACTION: _read_end_transaction,
    TraceType.RECALL: _read_recall,
}
