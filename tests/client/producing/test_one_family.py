"""Every way to send fails with `SendFailed`: the same code and the same kind of cause."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import (
    CallTimeout,
    InvalidArgument,
    MessageQueue,
    NotReachable,
    Producer,
    RequestRefused,
    SendFailed,
    SendTimedOut,
)
from pocketmq.testing.faults.faults import Faults
from pocketmq.testing.faults.rule import Rule

QUEUE = MessageQueue("T", "broker-a", 0)
DESTINATIONS: dict[str, dict[str, Any]] = {
    "any queue": {},
    "a queue": {"queue": QUEUE},
    "a queue number": {"queue_id": 1},
    "a sharding key": {"sharding_key": "order-7"},
}


SEND = "SEND_MESSAGE_V2"
NO_ANSWER = 10002
FAULTS: dict[str, tuple[Callable[[Faults], Rule], int, type[Exception], bool]] = {
    "refused for its form": (
        lambda faults: faults.refuse(code=SEND, response="MESSAGE_ILLEGAL", times=None), 13, RequestRefused, False
    ),
    "refused by a busy broker": (
        lambda faults: faults.refuse(code=SEND, response="SYSTEM_BUSY", times=None), 2, RequestRefused, True
    ),
    "no answer in time": (lambda faults: faults.silence(code=SEND, times=None), NO_ANSWER, CallTimeout, True),
    "the connection ends": (lambda faults: faults.disconnect(code=SEND, times=None), -1, NotReachable, True),
}  # fmt: skip
"""What happens to the send; the code, the cause, and whether the same send may succeed later."""


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_way_to_send_fails_alike(node: Node, faults: Faults, fault: str) -> None:
    add, code, cause, retriable = FAULTS[fault]
    async with Producer(
        "p",
        namesrv_addr=node.namesrv_address,
        retry_times_when_send_failed=0,
        retry_times_when_send_async_failed=0,
    ) as producer:
        await producer.send("T", b"x")
        rule = add(faults)
        timeout_ms = 150 if code == NO_ANSWER else 30_000
        for send in (producer.send, producer.send_nowait):
            for destination, keywords in DESTINATIONS.items():
                with pytest.raises(SendFailed) as failed:
                    await send("T", b"x", timeout_ms=timeout_ms, **keywords)
                where = f"{send.__name__} to {destination}"
                assert failed.value.code == code, where
                assert isinstance(failed.value.__cause__, cause), where
                assert failed.value.retriable is retriable, where
                assert isinstance(failed.value, TimeoutError) is (code == NO_ANSWER), where
        assert rule.hit_count >= 2 * len(DESTINATIONS)


async def test_back_pressure_that_lasts_too_long_is_a_timeout(node: Node, faults: Faults) -> None:
    async with Producer(
        "p",
        namesrv_addr=node.namesrv_address,
        enable_backpressure_for_async_mode=True,
        back_pressure_for_async_send_num=10,
    ) as producer:
        await producer.send("T", b"x")
        faults.silence(code=SEND, times=None)
        under_way = [producer.send_nowait("T", b"x", timeout_ms=400) for _ in range(10)]
        await asyncio.sleep(0)
        with pytest.raises(SendTimedOut, match="semaphoreAsyncNum timeout"):
            await producer.send_nowait("T", b"x", timeout_ms=50)
        ends = await asyncio.gather(*under_way, return_exceptions=True)
    assert all(isinstance(end, SendFailed) for end in ends)


async def test_keywords_that_no_send_has_or_that_contradict_each_other_are_named(producer: Producer) -> None:
    for keywords, words in (
        ({"tag": "a"}, r"^this send has no keyword tag: did you mean tags\?$"),
        ({"zzz": 1}, "this send has no keyword zzz: there are tags, keys"),
        ({"queue_id": 1, "sharding_key": "k"}, "give only one of queue, queue_id"),
    ):
        for send in (producer.send, producer.send_nowait, producer.send_oneway):
            with pytest.raises(InvalidArgument, match=words):
                await send("Orders", b"x", **keywords)
