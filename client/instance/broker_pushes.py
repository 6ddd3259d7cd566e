"""Requests that a broker sends to a client, on the connection the client opened: 39, 40, 220, 221, 307, 309, 326.

Each becomes a call of the group it names. Mirrors `ClientRemotingProcessor`.
"""

import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from pocketmq.protocol.bodies.client_state import GetConsumerStatusBody
from pocketmq.protocol.bodies.offsets import ResetOffsetBody
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.protocol.message.record import Record, decode_record
from pocketmq.protocol.requests.send import CheckTransactionState
from pocketmq.protocol.requests.to_client import (
    ConsumeMessageDirectly,
    GetConsumerRunningInfo,
    GetConsumerStatusFromClient,
    NotifyConsumerIdsChanged,
    PushReplyMessageToClient,
    ResetConsumerClientOffset,
)
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import from_fields

from ..connections.connection import Connection
from ..values.message import MessageExt, as_message
from .groups import GroupConsumer, GroupTable

_log = logging.getLogger(__name__)


Spawn = Callable[[Coroutine[Any, Any, None], str], object]
"""Runs a coroutine as a task with a name."""


class ServerRequestHandler:
    """Called by a connection with every request that arrives on it; never raises."""

    def __init__(self, groups: GroupTable, spawn: Spawn, rebalance_now: Callable[[], None]) -> None:
        self._groups = groups
        self._spawn = spawn
        self._rebalance_now = rebalance_now
        self._handlers: Final[dict[int, Callable[[Connection, Command], None]]] = {
            NotifyConsumerIdsChanged.code: self._consumer_ids_changed,
            CheckTransactionState.code: self._check_transaction,
            ResetConsumerClientOffset.code: self._reset_offsets,
            GetConsumerStatusFromClient.code: self._consumer_status,
            GetConsumerRunningInfo.code: self._running_info,
            ConsumeMessageDirectly.code: self._consume_directly,
            PushReplyMessageToClient.code: self._reply_arrived,
        }

    def __call__(self, connection: Connection, command: Command) -> None:
        handler = self._handlers.get(command.code)
        if handler is None:
            remark = f" request type {command.code} not supported"
            connection.answer(command, code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
            return
        try:
            handler(connection, command)
        except ProtocolError as error:
            _log.warning(
                "%s sent request %d that cannot be read: %s", connection.address, command.code, error
            )
            connection.answer(command, code=ResponseCode.SYSTEM_ERROR, remark=str(error))
        except Exception as error:  # the connection lives on, whatever one request does
            _log.exception("request %d of %s failed", command.code, connection.address)
            connection.answer(command, code=ResponseCode.SYSTEM_ERROR, remark=str(error))

    def _consumer_ids_changed(self, connection: Connection, command: Command) -> None:
        self._rebalance_now()

    def _check_transaction(self, connection: Connection, command: Command) -> None:
        request = from_fields(CheckTransactionState, command.fields)
        message = as_message(decode_record(bytes(command.body or b"")), request.broker_name or "")
        producer = self._groups.producers.get(message.properties.get(names.PGROUP, ""))
        if producer is None:
            _log.debug("transaction check for a group that is not here: %r", message)
            return
        producer.check_transaction(connection, message, request)

    def _reset_offsets(self, connection: Connection, command: Command) -> None:
        request = from_fields(ResetConsumerClientOffset, command.fields)
        offsets = (
            ResetOffsetBody.decode(command.body, max_bytes=len(command.body)).offset_table
            if command.body
            else {}
        )
        _log.info("%s resets the offsets of %s in %s", connection.address, request.group, request.topic)
        consumer = self._groups.consumers.get(request.group)
        if consumer is not None:
            self._spawn(consumer.reset_offsets(request.topic, offsets), "offset reset")

    def _consumer_status(self, connection: Connection, command: Command) -> None:
        request = from_fields(GetConsumerStatusFromClient, command.fields)
        consumer = self._groups.consumers.get(request.group)
        table = {} if consumer is None else consumer.consumer_status(request.topic)
        connection.answer(command, body=GetConsumerStatusBody(message_queue_table=table).encode())

    def _running_info(self, connection: Connection, command: Command) -> None:
        request = from_fields(GetConsumerRunningInfo, command.fields)
        consumer = self._find(connection, command, request.consumer_group)
        if consumer is not None:
            self._spawn(_answer_running_info(connection, command, consumer), "running info")

    def _consume_directly(self, connection: Connection, command: Command) -> None:
        request = from_fields(ConsumeMessageDirectly, command.fields)
        consumer = self._find(connection, command, request.consumer_group)
        if consumer is not None:
            message = as_message(decode_record(bytes(command.body or b"")), request.broker_name or "")
            self._spawn(
                _answer_direct_consumption(connection, command, consumer, message), "direct consumption"
            )

    def _find(self, connection: Connection, command: Command, group: str) -> GroupConsumer | None:
        consumer = self._groups.consumers.get(group)
        if consumer is None:
            remark = f"The Consumer Group <{group}> not exist in this consumer"
            connection.answer(command, code=ResponseCode.SYSTEM_ERROR, remark=remark)
        return consumer

    def _reply_arrived(self, connection: Connection, command: Command) -> None:
        request = from_fields(PushReplyMessageToClient, command.fields)
        text = request.properties or ""
        record = Record(
            request.topic,
            request.queue_id,
            0,
            0,
            bytes(command.body or b""),
            text.encode(),
            request.flag,
            request.sys_flag,
            request.born_timestamp,
            _packed(request.born_host),
            request.store_timestamp,
            _packed(request.store_host),
        )
        reply = as_message(record, "")
        correlation_id = reply.properties.get(names.CORRELATION_ID, "")
        if not any(
            producer.reply_arrived(correlation_id, reply) for producer in self._groups.producers.values()
        ):
            _log.warning("unexpected reply: no request has the correlation id %s", correlation_id)
        connection.answer(command)


async def _answer_running_info(connection: Connection, command: Command, consumer: GroupConsumer) -> None:
    connection.answer(command, body=(await consumer.running_info()).encode())


async def _answer_direct_consumption(
    connection: Connection, command: Command, consumer: GroupConsumer, message: MessageExt
) -> None:
    result = await consumer.consume_directly(message)
    if result is None:
        remark = f"The Consumer Group <{consumer.group}> not exist in this consumer"
        connection.answer(command, code=ResponseCode.SYSTEM_ERROR, remark=remark)
        return
    connection.answer(command, body=result.encode())


def _packed(host: str) -> bytes:
    """`ip:port` as packed in records; what cannot be read counts as 0.0.0.0:0."""
    name, _, port = host.strip("/").rpartition(":")
    try:
        return pack_host(name.strip("[]"), int(port))
    except ValueError:
        return bytes(8)
