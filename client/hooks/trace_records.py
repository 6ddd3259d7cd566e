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

from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import field

from ..arguments import checked
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
    kind, names = context.trace_type, _FIELDS[context.trace_type]
    ends_early = kind is TraceType.SUB_AFTER and context.access_channel is AccessChannel.CLOUD
    names = names[:_SUB_AFTER_IN_CLOUD] if ends_early else names
    return "".join(
        FIELD_END.join(
            (
                kind.value,
                *(_text(getattr(bean if name in _OF_BEAN else context, name)) for name in names),
                *([""] if ends_early else ()),  # the official writer ends the code like any other field
            )
        )
        + RECORD_END
        for bean in context.beans
    )


def trace_keys(context: TraceContext) -> list[str]:
    """The keys of a trace message: ids and keys of the messages it is about."""
    found: dict[str, None] = {}
    for bean in context.beans:
        found[bean.msg_id] = None
        found.update(dict.fromkeys((bean.keys or "").split(" ") if bean.keys else ()))
    return list(found)


@checked
def decode_traces(text: str) -> list[TraceContext]:
    """The records of a trace message, one context each; records of unknown types are left out. ClientError for a
    record that cannot be read."""
    contexts = []
    for record in text.split(RECORD_END):
        kind, *fields = record.split(FIELD_END)
        if kind not in _KINDS:
            continue
        try:
            contexts.append(_read(TraceType(kind), fields))
        except (IndexError, ValueError) as error:
            raise ClientError(f"not a trace record: {record[:80]!r}") from error
    return contexts


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(int(value) if isinstance(value, MessageType) else value)


_FIELDS: Final = {
    TraceType.PUB: (
        *("timestamp_ms", "region_id", "group_name", "topic", "msg_id", "tags", "keys", "store_host"),
        *("body_length", "cost_ms", "msg_type", "offset_msg_id", "is_success"),
    ),
    TraceType.SUB_BEFORE: (
        *("timestamp_ms", "region_id", "group_name", "request_id", "msg_id", "retry_times", "keys"),
    ),
    TraceType.SUB_AFTER: (
        *("request_id", "msg_id", "cost_ms", "is_success", "keys", "context_code"),
        *("timestamp_ms", "group_name"),
    ),
    TraceType.END_TRANSACTION: (
        *("timestamp_ms", "region_id", "group_name", "topic", "msg_id", "tags", "keys", "store_host"),
        *("msg_type", "transaction_id", "transaction_state", "from_transaction_check"),
    ),
    TraceType.RECALL: ("timestamp_ms", "region_id", "group_name", "topic", "msg_id", "is_success"),
}
"""The fields of each type of record, in their order: those of the message and those of the step."""
_SUB_AFTER_IN_CLOUD: Final = 6
"""Fields of a SubAfter without time and group; the oldest clients leave out the code too."""
_OF_BEAN: Final = frozenset(TraceBean.__struct_fields__)
_TYPES: Final = {
    field.name: field.type for kind in (TraceBean, TraceContext) for field in msgspec.structs.fields(kind)
}
_KINDS: Final = frozenset(kind.value for kind in TraceType)


def _read(kind: TraceType, fields: list[str]) -> TraceContext:
    """IndexError or ValueError for fields that are missing or no numbers."""
    names, channel = _FIELDS[kind], None
    if kind is TraceType.PUB and len(fields) < len(names):  # clients before 4.3 wrote no offset message id
        names = tuple(name for name in names if name != "offset_msg_id")
    if kind is TraceType.SUB_AFTER and len(fields) < len(names):
        channel = AccessChannel.CLOUD
        names = names[: min(max(len(fields), _SUB_AFTER_IN_CLOUD - 1), _SUB_AFTER_IN_CLOUD)]
    values = {name: _value(_TYPES[name], fields[index]) for index, name in enumerate(names)}
    bean = TraceBean(**{name: value for name, value in values.items() if name in _OF_BEAN})
    step = {"timestamp_ms": 0} | {name: value for name, value in values.items() if name not in _OF_BEAN}
    return TraceContext(trace_type=kind, access_channel=channel, beans=[bean], **step)


def _value(kind: Any, text: str) -> Any:
    if kind is bool:
        return text == "true"
    return kind(int(text)) if kind in (int, MessageType) else text
