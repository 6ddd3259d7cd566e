"""Callbacks of the user in the event loop: coroutine functions, which would never run, are refused at once."""

import functools
from typing import Any

import pytest
from pocketmq.client import ClientError, LitePullConsumer, Producer, PushConsumer
from pocketmq.client.hooks.hooks import SendMessageHook, is_coroutine_function
from pocketmq.client.producing.transaction import LocalTransactionState, TransactionProducer

from client_waits import send

ADDRESS = "127.0.0.1:9"
COMMIT = LocalTransactionState.COMMIT_MESSAGE


async def waits(*_: Any) -> LocalTransactionState:
    return COMMIT


class Waits:
    async def __call__(self, *_: Any) -> LocalTransactionState:
        return COMMIT


def test_a_coroutine_function_is_recognised_in_every_form() -> None:
    partial = functools.partial(functools.partial(waits, 1), 2)
    assert all(is_coroutine_function(one) for one in (waits, Waits(), partial, functools.partial(Waits())))
    assert not any(is_coroutine_function(one) for one in (print, Waits, functools.partial(print), 3))


@pytest.mark.parametrize("callback", [waits, Waits(), functools.partial(waits, 1)])
@pytest.mark.parametrize("name", ["on_assigned", "on_revoked", "on_error", "on_reconnect"])
def test_event_callbacks_must_be_plain_functions(name: str, callback: Any) -> None:
    with pytest.raises(ClientError, match=f"{name} must be a plain function, called in the event loop"):
        PushConsumer("g", print, namesrv_addr=ADDRESS, **{name: callback})


def test_event_callbacks_of_a_lite_pull_consumer_must_be_plain_functions() -> None:
    with pytest.raises(ClientError, match="on_queues_changed must be a plain function"):
        LitePullConsumer("g", namesrv_addr=ADDRESS, on_queues_changed=waits)  # type: ignore[arg-type]
    with pytest.raises(ClientError, match="listener must be a plain function"):
        LitePullConsumer("g", namesrv_addr=ADDRESS).on_topic_queues_changed("T", waits)


def test_a_hook_must_not_be_a_coroutine_function() -> None:
    class Slow(SendMessageHook):
        async def send_message_after(self, context: Any) -> None:  # type: ignore[override]
            pass

    with pytest.raises(ClientError, match=r"Slow\.send_message_after must be a plain function"):
        Producer("p", namesrv_addr=ADDRESS, hooks=[Slow()])


async def test_a_local_transaction_may_be_an_object_with_an_async_call(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 1)
    async with TransactionProducer("p", Waits(), namesrv_addr=namesrv_addr) as producer:
        sent = await producer.send_in_transaction("T", b"x", Waits(), properties={"colour": "red"})
    assert sent.state is COMMIT
