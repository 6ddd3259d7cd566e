"""A message as clients send and receive it: `Message`, `SystemProperties` and what they hold."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from ..wire import declare
from ..wire.declare import Int32, Int64
from .enumerations import DigestType, Encoding, MessageType
from .resources import Resource
from .times import Duration, Timestamp


class Digest(declare.Message, frozen=True, kw_only=True):
    type: Annotated[DigestType, 1] = DigestType.DIGEST_TYPE_UNSPECIFIED
    checksum: Annotated[str, 2] = ""


class DeadLetterQueue(declare.Message, frozen=True, kw_only=True):
    topic: Annotated[str, 1] = ""
    message_id: Annotated[str, 2] = ""


class SystemProperties(declare.Message, frozen=True, kw_only=True):
    tag: Annotated[str | None, 1] = None
    keys: Annotated[Sequence[str], 2] = ()
    message_id: Annotated[str, 3] = ""
    body_digest: Annotated[Digest, 4] = Digest()
    body_encoding: Annotated[Encoding, 5] = Encoding.ENCODING_UNSPECIFIED
    message_type: Annotated[MessageType, 6] = MessageType.MESSAGE_TYPE_UNSPECIFIED
    born_timestamp: Annotated[Timestamp, 7] = Timestamp()
    born_host: Annotated[str, 8] = ""
    store_timestamp: Annotated[Timestamp | None, 9] = None
    store_host: Annotated[str, 10] = ""
    delivery_timestamp: Annotated[Timestamp | None, 11] = None
    receipt_handle: Annotated[str | None, 12] = None
    queue_id: Annotated[Int32, 13] = 0
    queue_offset: Annotated[Int64 | None, 14] = None
    invisible_duration: Annotated[Duration | None, 15] = None
    delivery_attempt: Annotated[Int32 | None, 16] = None
    message_group: Annotated[str | None, 17] = None
    trace_context: Annotated[str | None, 18] = None
    orphaned_transaction_recovery_duration: Annotated[Duration | None, 19] = None
    dead_letter_queue: Annotated[DeadLetterQueue | None, 20] = None
    lite_topic: Annotated[str | None, 21] = None
    priority: Annotated[Int32 | None, 22] = None


class Message(declare.Message, frozen=True, kw_only=True):
    topic: Annotated[Resource, 1] = Resource()
    user_properties: Annotated[Mapping[str, str], 2] = msgspec.field(default_factory=dict)
    system_properties: Annotated[SystemProperties, 3] = SystemProperties()
    body: Annotated[bytes, 4] = b""
