"""Messages that become visible only once a local transaction has succeeded.

    async with TransactionProducer("group", checker, namesrv_addr=...) as producer:
        await producer.send_in_transaction("Orders", b"paid", execute)

The message is sent as a half message, `execute` runs the local transaction, and its verdict commits the message or
rolls it back. If the verdict is UNKNOW or gets lost, the broker asks later and the `checker` answers. Both may be
coroutines, or plain functions, which run in a thread. Mirrors `TransactionMQProducer`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum
from typing import Any, Final, Unpack

import msgspec
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_NONE, TRANSACTION_ROLLBACK
from pocketmq.protocol.message.offset_id import decode_message_id
from pocketmq.protocol.requests.send import CheckTransactionState, EndTransaction

from ..arguments import checked
from ..connections.connection import Connection
from ..errors import ClientError, InvalidArgument
from ..hooks.hooks import EndTransactionContext, Hook, Hooks, call_hooks, is_coroutine_function
from ..instance.instance import ClientInstance
from ..settings.keywords import ProducerOptions
from ..settings.producer_settings import ProducerSettings
from ..values.message import Message, MessageExt
from ..values.results import SendResult, SendStatus
from .outgoing import Outgoing
from .producer import Producer
from .send_arguments import MessageKeywords, message_of
from .sender import Sender

_log = logging.getLogger(__name__)

CHECKS_AT_ONCE: Final = 1
"""Official checkThreadPoolMinSize: the checker gets one message after the other."""
CHECKS_WAITING: Final = 2_000
"""Official checkRequestHoldMax: further questions are dropped, the broker asks again."""


class LocalTransactionState(Enum):
    """What became of the local transaction (the last is the official spelling)."""

    COMMIT_MESSAGE = TRANSACTION_COMMIT
    ROLLBACK_MESSAGE = TRANSACTION_ROLLBACK
    UNKNOW = TRANSACTION_NONE


class TransactionSendResult(msgspec.Struct, frozen=True):
    """How the half message was stored, and the verdict of the local transaction (official TransactionSendResult)."""

    result: SendResult
    state: LocalTransactionState


_Returned = LocalTransactionState | Awaitable[LocalTransactionState]
Execute = Callable[[Message, Any], _Returned]
"""Runs the local transaction: gets the message and the argument, returns a LocalTransactionState."""
Checker = Callable[[MessageExt], _Returned]
"""Gets a half message, perhaps of another process of the group, and returns its LocalTransactionState."""


class TransactionProducer(Producer):
    """A producer of messages in transactions. The broker asks its `checker` about half messages without a verdict."""

    @checked
    def __init__(
        self,
        group: str,
        checker: Checker,
        *,
        settings: ProducerSettings | None = None,
        hooks: Iterable[Hook] = (),
        **options: Unpack[ProducerOptions],
    ) -> None:
        super().__init__(group, settings=settings, hooks=hooks, **options)
        self._checker = checker

    def _make_sender(self, instance: ClientInstance) -> Sender:
        return _CheckedSender(self._checker, instance, self._group, self.settings, self._hooks)

    async def _join(self, instance: ClientInstance) -> None:
        """Every broker learns of this producer now, whether or not it sends: half messages of a member that is gone may
        wait anywhere. (The official client announces itself once it sends.)"""
        try:
            await instance.routes.find_all_brokers()
        except ClientError as error:
            _log.warning("%s is asked about transactions only where it sends: %s", self.group, error)
        await super()._join(instance)

    @checked
    async def send_in_transaction(
        self,
        topic: str | Message,
        body: bytes | str | None,
        execute: Execute,
        arg: Any = None,
        *,
        timeout_ms: int | None = None,
        **keywords: Unpack[MessageKeywords],
    ) -> TransactionSendResult:
        """Send a half message, run `execute(message, arg)`, and commit or roll back by what it returns.

        With a `Message` as first argument, `body` is None. If `execute` raises or returns anything but a
        LocalTransactionState, the verdict is UNKNOW and the broker asks the checker. `SendFailed` if the half message
        was not stored; `execute` is not called then. If it was stored with another status than SEND_OK, it is rolled
        back and `execute` is not called. Delays are refused, as by 5.5 clients.
        """
        message = message_of(topic, body, **keywords)
        if message.is_delayed:
            raise InvalidArgument("Transactional messages do not support delayed delivery")
        sender = self._ready
        self._check(message)
        properties = message.wire_properties() | {names.TRAN_MSG: "true", names.PGROUP: self.group}
        outgoing = sender.prepare(message, properties)
        attempts = 1 + self.settings.retry_times_when_send_failed
        limit_ms = self.settings.send_msg_timeout if timeout_ms is None else timeout_ms
        result = await sender.send(outgoing, sender.due_in(limit_ms), attempts=attempts)
        remark = None
        if result.status is SendStatus.SEND_OK:
            state, remark = await _verdict_of(execute, message, arg)
        else:
            state = LocalTransactionState.ROLLBACK_MESSAGE
        await self._end(outgoing, result, state, remark)
        return TransactionSendResult(result, state)

    async def _end(
        self, sent: Outgoing, result: SendResult, state: LocalTransactionState, remark: str | None
    ) -> None:
        """Send the verdict one-way; a failure is only logged, because the broker will ask."""
        instance, queue = self._running, self._namespace.wrap_queue(result.queue)
        request = EndTransaction(
            producer_group=self.group,
            tran_state_table_offset=result.queue_offset,
            commit_log_offset=decode_message_id(result.offset_message_id).position,
            commit_or_rollback=state.value,
            msg_id=result.message_id,
            transaction_id=result.transaction_id,
            topic=sent.topic,
            broker_name=queue.broker_name,
        )
        try:
            address = await instance.routes.find_master(queue, main_port=True)
            _call_hooks(self._hooks, request, state, address, sent.message, sent.properties, sent.message_id)
            connection = await instance.connections.get(address)
            connection.notify(request, remark=remark)
        except ClientError as error:
            _log.warning("the end of a transaction could not be sent: %s", error)


class _CheckedSender(Sender):
    """Answers the broker's questions about half messages."""

    def __init__(
        self, checker: Checker, instance: ClientInstance, group: str, settings: ProducerSettings, hooks: Hooks
    ) -> None:
        super().__init__(instance, group, settings, hooks)
        self._checker = checker
        self._all_hooks = hooks
        self._asking = asyncio.Semaphore(CHECKS_AT_ONCE)
        self._questions = 0

    def check_transaction(
        self, connection: Connection, message: MessageExt, request: CheckTransactionState
    ) -> None:
        """The broker asks (39); the checker answers in the background."""
        if self._questions >= CHECKS_WAITING:
            _log.warning("too many transaction checks at once for %s", self.group)
            return
        self._questions += 1
        self._instance.spawn(self._answer(connection, message, request), "transaction check")

    async def _answer(
        self, connection: Connection, message: MessageExt, question: CheckTransactionState
    ) -> None:
        topic, message.topic = message.topic, self.namespace.unwrap(message.topic)
        try:
            async with self._asking:
                state, remark = await _verdict_of(self._checker, message)
        finally:
            self._questions -= 1
        unique_id = message.properties.get(names.UNIQ_KEY)
        request = EndTransaction(
            producer_group=self.group,
            tran_state_table_offset=question.tran_state_table_offset,
            commit_log_offset=question.commit_log_offset,
            commit_or_rollback=state.value,
            from_transaction_check=True,
            msg_id=unique_id or question.msg_id or message.offset_message_id,
            transaction_id=question.transaction_id,
            topic=topic,
            broker_name=question.broker_name,
        )
        _call_hooks(
            self._all_hooks, request, state, connection.address, message, message.properties, unique_id
        )
        connection.notify(request, remark=remark)


def _call_hooks(
    hooks: Hooks,
    request: EndTransaction,
    state: LocalTransactionState,
    address: str,
    message: Message | MessageExt,
    properties: dict[str, str],
    unique_id: str | None,
) -> None:
    """Show the hooks an end that is about to leave for `address`."""
    if hooks.end_transaction:
        context = EndTransactionContext(
            producer_group=request.producer_group or "",
            broker_address=address,
            topic=request.topic or "",
            tags=message.tags,
            keys=message.keys,
            properties=properties,
            msg_id=request.msg_id or "",
            transaction_id=unique_id,
            state=state.name,
            from_transaction_check=bool(request.from_transaction_check),
        )
        call_hooks([hook.end_transaction for hook in hooks.end_transaction], context)


async def _verdict_of(
    function: Callable[..., Any], *arguments: Any
) -> tuple[LocalTransactionState, str | None]:
    """The verdict, and if the function raised, the text of its exception."""
    try:
        if is_coroutine_function(function):
            state = await function(*arguments)
        else:
            state = await asyncio.to_thread(function, *arguments)
    except Exception as error:
        _log.warning("a local transaction or its checker failed", exc_info=error)
        return LocalTransactionState.UNKNOW, f"{type(error).__name__}: {error}"
    if not isinstance(state, LocalTransactionState):
        _log.warning("%s returned %r: expected a LocalTransactionState; it counts as UNKNOW", function, state)
        return LocalTransactionState.UNKNOW, None
    return state, None
