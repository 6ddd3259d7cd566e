"""What producers ask: send, end a transaction, recall a timed message."""

from collections.abc import Sequence
from typing import Annotated

from ..wire import declare
from ..wire.declare import Int64
from .codes import Status
from .enumerations import TransactionResolution, TransactionSource
from .message import Message
from .resources import Resource


class SendMessageRequest(declare.Message, frozen=True, kw_only=True):
    messages: Annotated[Sequence[Message], 1] = ()


class SendResultEntry(declare.Message, frozen=True, kw_only=True):
    status: Annotated[Status, 1] = Status()
    message_id: Annotated[str, 2] = ""
    transaction_id: Annotated[str, 3] = ""
    offset: Annotated[Int64, 4] = 0
    recall_handle: Annotated[str, 5] = ""


class SendMessageResponse(declare.Message, frozen=True, kw_only=True):
    status: Annotated[Status, 1] = Status()
    entries: Annotated[Sequence[SendResultEntry], 2] = ()


class EndTransactionRequest(declare.Message, frozen=True, kw_only=True):
    topic: Annotated[Resource, 1] = Resource()
    message_id: Annotated[str, 2] = ""
    transaction_id: Annotated[str, 3] = ""
    resolution: Annotated[TransactionResolution, 4] = TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED
    source: Annotated[TransactionSource, 5] = TransactionSource.SOURCE_UNSPECIFIED
    trace_context: Annotated[str, 6] = ""


class EndTransactionResponse(declare.Message, frozen=True, kw_only=True):
    status: Annotated[Status, 1] = Status()


class RecallMessageRequest(declare.Message, frozen=True, kw_only=True):
    topic: Annotated[Resource, 1] = Resource()
    recall_handle: Annotated[str, 2] = ""


class RecallMessageResponse(declare.Message, frozen=True, kw_only=True):
    status: Annotated[Status, 1] = Status()
    message_id: Annotated[str, 2] = ""
