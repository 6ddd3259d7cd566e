"""What a broker has, as structs of `values.py`: stored messages and members.

Imported without the port too: `pocketmq tail --json` prints such messages, the test companion shows such members.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType
from pocketmq.broker.errors import PeerError, Refusal
from pocketmq.protocol.bodies.client_state import ConsumerRunningInfo
from pocketmq.protocol.errors import BodyError, ProtocolError
from pocketmq.protocol.languages import version_name
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.compression import decompress
from pocketmq.protocol.message.flags import COMPRESSED
from pocketmq.protocol.message.offset_id import encode_message_id, unpack_host
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.requests.to_client import GetConsumerRunningInfo
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import read_reply

from .values import Member, Message, base64_of, text_of

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.broker.membership.consumer_groups import Client

BODY_BYTES: Final = 4 << 20
"""The longest body that is shown."""


def message_value(record: Record, broker_name: str, body: bytes | None = None) -> Message:
    """One stored message. `body` is its body if it is decompressed already; it may have any length then."""
    properties = decode_properties(record.properties)
    error: str | UnsetType = UNSET
    if body is None:
        body, error = _shown_body(record)
    return Message(
        topic=record.topic,
        broker_name=broker_name,
        queue_id=record.queue_id,
        queue_offset=record.queue_offset,
        message_id=properties.get(names.UNIQ_KEY),
        offset_message_id=encode_message_id(record.store_host, record.position),
        tags=properties.get(names.TAGS),
        keys=properties.get(names.KEYS, "").split(),
        properties=properties,
        flag=record.flag,
        born_timestamp=record.born_timestamp,
        born_host=_host(record.born_host),
        store_timestamp=record.store_timestamp,
        store_host=_host(record.store_host),
        reconsume_times=record.reconsume_times,
        text=text_of(body) if error is UNSET else None,
        body_base64=base64_of(body) if error is UNSET else None,
        error=error,
    )


def _shown_body(record: Record) -> tuple[bytes, str | UnsetType]:
    """The body, or why it cannot be shown."""
    if len(record.body) > BODY_BYTES:
        return b"", f"the body has {len(record.body)} bytes: more than {BODY_BYTES} are not shown"
    try:
        return bytes(decompress(record.body, record.sys_flag, max_bytes=BODY_BYTES)), UNSET
    except ProtocolError as failure:
        is_compressed = record.sys_flag & COMPRESSED
        return b"", f"the body cannot be decompressed: {failure}" if is_compressed else str(failure)


def _host(packed: bytes) -> str:
    address, port = unpack_host(packed)
    return f"{address}:{port}"


def members_of(broker: "Broker", group: str) -> Iterator[Member]:
    """The connected consumers of a group in the order in which they joined."""
    online = broker.membership.consumers.get(group)
    for client in () if online is None else list(online.clients()):
        yield Member(client.client_id, client.connection.peer, client.language, version_name(client.version))


async def running_info(client: "Client", group: str, timeout_seconds: float) -> ConsumerRunningInfo | None:
    """What a member says of itself (307); None if it does not answer."""
    request = GetConsumerRunningInfo(consumer_group=group, client_id=client.client_id)
    try:
        answer = await client.connection.exchange(request, timeout_seconds=timeout_seconds)
        if answer.code != ResponseCode.SUCCESS or answer.body is None:
            return None
        return read_reply(request, answer.fields, answer.body)
    except (PeerError, Refusal, BodyError):
        return None
