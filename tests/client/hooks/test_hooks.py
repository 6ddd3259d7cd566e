"""Hooks: when each is called, with what, and that a failing hook changes nothing."""

import asyncio
from typing import Any

import pytest
from pocketmq.client import Message, MessageExt, MessageQueue, Producer, RetryLater, RPCHook
from pocketmq.client.errors import ClientError, SendFailed
from pocketmq.client.hooks.hooks import (
    CheckForbiddenContext,
    CheckForbiddenHook,
    CommunicationMode,
    ConsumeMessageContext,
    ConsumeMessageHook,
    EndTransactionContext,
    EndTransactionHook,
    FilterMessageContext,
    FilterMessageHook,
    Hooks,
    MessageType,
    SendMessageContext,
    SendMessageHook,
)
from pocketmq.client.producing.send_hooks import message_type
from pocketmq.client.values.listener_returns import ConsumeOrderlyStatus, ConsumeReturnType
from pocketmq.protocol.wire.command import Command, RawBody
from pocketmq.protocol.wire.schema import Request

from client_waits import Seen, consuming, polling, send
from waiting import until


class SendLog(SendMessageHook):
    """Keeps (moment, mode, type, whether it has a result, whether it has an error)."""

    def __init__(self, *, fails: bool = False) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self.contexts: list[SendMessageContext] = []
        self._fails = fails

    def send_message_before(self, context: SendMessageContext) -> None:
        self.note("before", context)

    def send_message_after(self, context: SendMessageContext) -> None:
        self.note("after", context)

    def note(self, moment: str, context: SendMessageContext) -> None:
        self.contexts.append(context)
        self.seen.append(
            (
                moment,
                context.communication_mode,
                context.message_type,
                context.send_result is not None,
                type(context.exception).__name__,
            )
        )
        if self._fails:
            raise RuntimeError("a hook of the user")


SYNC, ASYNC, ONEWAY = CommunicationMode.SYNC, CommunicationMode.ASYNC, CommunicationMode.ONEWAY
NORMAL = MessageType.NORMAL_MSG


@pytest.mark.parametrize("fails", [False, True])
async def test_send_hooks_see_each_attempt_and_cannot_break_it(namesrv_addr: str, fails: bool) -> None:
    log = SendLog(fails=fails)
    async with Producer("p", namesrv_addr=namesrv_addr, hooks=[log]) as producer:
        sent = await producer.send("T", b"x" * 5000, tags="a", keys="k")
        await producer.send_nowait("T", b"x")
        await producer.send_oneway("T", b"x")
        await producer.send("T", b"x", delay_level=1)
        await producer.send_batch([Message("T", b"a"), Message("T", b"b")])
    none = "NoneType"
    assert log.seen == [
        ("before", SYNC, NORMAL, False, none),
        ("after", SYNC, NORMAL, True, none),
        ("before", ASYNC, NORMAL, False, none),
        ("after", ASYNC, NORMAL, False, none),  # written
        ("after", ASYNC, NORMAL, True, none),
        ("before", ONEWAY, NORMAL, False, none),
        ("after", ONEWAY, NORMAL, False, none),
        ("before", SYNC, MessageType.DELAY_MSG, False, none),
        ("after", SYNC, MessageType.DELAY_MSG, True, none),
        ("before", SYNC, NORMAL, False, none),
        ("after", SYNC, NORMAL, True, none),
    ]
    first, batch = log.contexts[0], log.contexts[-1]
    assert first.send_result == sent
    assert (first.producer_group, first.message.tags, first.queue.topic) == ("p", "a", "T")
    assert first.body_size < 500 < len(first.message.body), "the compressed body's"
    assert first.properties["UNIQ_KEY"] == sent.message_id
    assert batch.body_size == len(batch.message.body) > 40


async def test_send_hooks_get_the_error_of_a_failed_attempt(namesrv_addr: str) -> None:
    log = SendLog()
    async with Producer("p", namesrv_addr=namesrv_addr, hooks=[log]) as producer:
        await producer.send("T", b"x")
        with pytest.raises(ClientError):
            await producer.send("T", b"x", queue=MessageQueue("T", "broker-a", 99))
    assert [entry[4] for entry in log.seen] == ["NoneType", "NoneType", "NoneType", "RequestRefused"]


class Forbids(CheckForbiddenHook):
    """Forbids one word."""

    def __init__(self, error: Exception) -> None:
        self.asked: list[CheckForbiddenContext] = []
        self._error = error

    def check_forbidden(self, context: CheckForbiddenContext) -> None:
        self.asked.append(context)
        if context.message.body == b"forbidden":
            raise self._error


async def test_a_forbidden_message_is_not_sent(namesrv_addr: str) -> None:
    mild, strict = Forbids(ClientError("not this word")), Forbids(PermissionError("never"))
    for hook, raised, times in ((mild, SendFailed, 3), (strict, PermissionError, 1)):
        seen = SendLog()
        async with Producer("p", namesrv_addr=namesrv_addr, hooks=[hook, seen]) as producer:
            await producer.send("T", b"allowed")
            with pytest.raises(raised):
                await producer.send("T", b"forbidden")
        assert [one.message.body for one in hook.asked] == [b"allowed", *[b"forbidden"] * times]
        assert len(seen.seen) == 2, "no hook sees the forbidden message"
    asked = mild.asked[0]
    assert (asked.group, asked.communication_mode, asked.unit_mode) == ("p", SYNC, False)
    assert asked.name_server_address == namesrv_addr


class ConsumeLog(ConsumeMessageHook):
    """Keeps its arguments, and fails."""

    def __init__(self) -> None:
        self.before = 0
        self.after: list[tuple[str, bool, ConsumeReturnType]] = []

    def consume_message_before(self, context: ConsumeMessageContext) -> None:
        self.before += len(context.messages)
        raise RuntimeError("a hook of the user")

    def consume_message_after(self, context: ConsumeMessageContext) -> None:
        self.after.append((context.status, context.is_success, context.return_type))
        raise RuntimeError("a hook of the user")


async def test_consume_hooks_get_the_outcome_of_each_call(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 4)
    log = ConsumeLog()

    async def listener(message: MessageExt) -> object:
        match message.body:
            case b"0":
                raise ValueError
            case b"1":
                raise RetryLater(-1)
            case b"2":
                return "nonsense"
        return None

    async with consuming(namesrv_addr, listener, hooks=[log]):
        await until(lambda: len(log.after) == 4)
    assert log.before == 4
    assert sorted(log.after) == [
        ("CONSUME_SUCCESS", True, ConsumeReturnType.SUCCESS),
        ("RECONSUME_LATER", False, ConsumeReturnType.EXCEPTION),
        ("RECONSUME_LATER", False, ConsumeReturnType.RETURNNULL),
        ("RECONSUME_LATER", False, ConsumeReturnType.FAILED),
    ]


async def test_ordered_and_lite_consumers_call_their_hooks_too(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 2)
    ordered, lite = ConsumeLog(), ConsumeLog()

    async def listener(message: MessageExt) -> object:
        if not ordered.after:
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        return ConsumeOrderlyStatus.SUCCESS

    async with consuming(
        namesrv_addr, listener, orderly=True, hooks=[ordered], suspend_current_queue_time_millis=10
    ):
        await until(lambda: sum(ok for _, ok, _ in ordered.after) == 2)
    assert ordered.after[0] == ("SUSPEND_CURRENT_QUEUE_A_MOMENT", False, ConsumeReturnType.FAILED)
    assert ordered.after[-1] == ("SUCCESS", True, ConsumeReturnType.SUCCESS)
    async with polling(namesrv_addr, "l", hooks=[lite]) as consumer:
        async with asyncio.timeout(30):
            while lite.before < 2:
                await consumer.poll(1000)
    assert set(lite.after) == {("CONSUME_SUCCESS", True, ConsumeReturnType.SUCCESS)}


class Filters(FilterMessageHook):
    """Removes messages, or fails."""

    def filter_message(self, context: FilterMessageContext) -> None:
        context.messages = [message for message in context.messages if message.body != b"1"]
        raise RuntimeError("a hook of the user")


async def test_filters_remove_messages(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 4)
    seen = Seen()
    async with consuming(namesrv_addr, seen, hooks=[Filters()]) as consumer:
        await until(lambda: len(seen.messages) == 3)
        await consumer.wait_assigned()
    assert sorted(seen.bodies) == [b"0", b"2", b"3"]


class Ends(EndTransactionHook):
    def end_transaction(self, context: EndTransactionContext) -> None:
        raise RuntimeError("a hook of the user")


class Refuses(RPCHook):
    """Raises before or after requests of one name."""

    def __init__(self, name: str, *, before: bool) -> None:
        self._name, self._before = name, before

    def before_request(
        self, address: str, request: Request[Any], fields: dict[str, str], body: RawBody | None
    ) -> None:
        if self._before and request.name == self._name:
            raise PermissionError("before")

    def after_response(self, address: str, request: Request[Any], response: Command) -> None:
        if not self._before and request.name == self._name:
            raise PermissionError("after")


@pytest.mark.parametrize("before", [True, False])
async def test_what_a_request_hook_raises_is_the_outcome_of_that_call_alone(
    namesrv_addr: str, before: bool
) -> None:
    async with Producer(
        "p", namesrv_addr=namesrv_addr, hooks=[Refuses("SEND_MESSAGE_V2", before=before)]
    ) as producer:
        with pytest.raises(PermissionError, match="before" if before else "after"):
            await producer.send("T", b"x")
        if not before:
            assert await producer.queues("T"), "the connections are as good as before"
        assert producer._running.connections.live(producer._running.routes.master("broker-a") or "")


def test_an_object_may_be_a_hook_of_several_kinds() -> None:
    class Both(SendLog, ConsumeLog): ...

    both = Both()
    hooks = Hooks([both, Ends()])
    assert hooks.send == hooks.consume == (both,)
    assert len(hooks.end_transaction) == 1
    assert hooks.rpc == hooks.filter == hooks.check_forbidden == ()
    with pytest.raises(ClientError, match="function is not a hook"):
        Hooks([lambda context: None])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, MessageType.NORMAL_MSG),
        ({"TRAN_MSG": "true"}, MessageType.TRANS_MSG_HALF),
        ({"DELAY": "3"}, MessageType.DELAY_MSG),
        ({"TIMER_DELIVER_MS": "1", "TRAN_MSG": "true"}, MessageType.DELAY_MSG),
        ({"TIMER_DELAY_SEC": "1"}, MessageType.DELAY_MSG),
    ],
)
def test_the_type_of_a_message_depends_on_its_properties(
    properties: dict[str, str], expected: MessageType
) -> None:
    assert message_type(properties) is expected
