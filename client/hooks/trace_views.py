"""Message traces as tools show them: what one producer or consumer did with one message.

The text of a trace is `trace_records.py`; SubBefore, EndTransaction and Recall are not shown by the official tool.
Official class: TraceView.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from ..errors import ClientError
from ..values.message import MessageExt
from .trace_records import TraceType, decode_traces

SHOWN: Final = (TraceType.PUB, TraceType.SUB_AFTER)


class TraceView(msgspec.Struct, frozen=True):
    """What one client did with a message. `timestamp` in epoch ms, `cost_ms` of the send or of the listener."""

    kind: TraceType
    """PUB or SUB_AFTER."""
    group: str
    client_host: str
    timestamp: int
    cost_ms: int
    is_success: bool


def trace_views(trace: MessageExt, message_id: str) -> Iterator[TraceView]:
    """The records of one trace message that are about a message; none if the trace cannot be read."""
    host = trace.born_host.rpartition(":")[0]
    try:
        contexts = decode_traces(trace.body.decode("utf-8", "replace"))
    except ClientError:
        return
    for context in contexts:
        if context.trace_type in SHOWN and any(bean.msg_id == message_id for bean in context.beans):
            yield TraceView(
                context.trace_type,
                context.group_name,
                host,
                context.timestamp_ms,
                context.cost_ms,
                context.is_success,
            )
