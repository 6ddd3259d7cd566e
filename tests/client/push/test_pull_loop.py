"""What the pulls of a push consumer ask for; the values are those of the official client."""

from typing import Any

import pytest
from pocketmq.protocol.message.flags import PULL_COMMIT_OFFSET
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.testing.faults.faults import Faults

from client_waits import Asked, Seen, consuming, send
from waiting import until


def pulls_of(asked: Asked) -> list[PullMessage]:
    """Those of topic T."""
    return [one for _, one in asked.requests if isinstance(one, PullMessage) and one.topic == "T"]


@pytest.mark.parametrize(
    ("options", "sys_flag", "expression"),
    [
        ({}, 2, None),
        ({"post_subscription_when_pull": True}, 6, "a||b"),
        ({"message_model": "BROADCASTING"}, 2, None),
    ],
)
async def test_a_pull_is_held_and_sends_the_expression_only_if_it_is_told_to(
    namesrv_addr: str, options: dict[str, Any], sys_flag: int, expression: str | None
) -> None:
    asked = Asked()
    await send(namesrv_addr, "T", 1)
    async with consuming(namesrv_addr, Seen(), subscription={"T": "a||b"}, hooks=[asked], **options):
        await until(lambda: len({pull.queue_id for pull in pulls_of(asked)}) == 4)
    pulls = pulls_of(asked)
    assert {pull.sys_flag & ~PULL_COMMIT_OFFSET for pull in pulls} == {sys_flag}
    assert {pull.subscription for pull in pulls} == {expression}
    assert {(pull.suspend_timeout_millis, pull.max_msg_nums) for pull in pulls} == {(15_000, 32)}
    if options.get("message_model"):
        assert {(pull.commit_offset, pull.sys_flag) for pull in pulls} == {(0, 2)}


async def test_a_pull_carries_no_offset_before_the_broker_has_accepted_one_of_the_topic(
    namesrv_addr: str, faults: Faults
) -> None:
    faults.refuse(code="UPDATE_CONSUMER_OFFSET", topic="T", response="SYSTEM_ERROR", times=None)
    seen, asked = Seen(), Asked()
    await send(namesrv_addr, "T", 4)

    def carries() -> bool:
        return any(pull.sys_flag & PULL_COMMIT_OFFSET for pull in pulls_of(asked))

    async with consuming(namesrv_addr, seen, hooks=[asked]):
        for count in (4, 8, 12):
            await until(lambda count=count: len(seen.messages) == count)
            await send(namesrv_addr, "T", 4)
        await until(lambda: len(seen.messages) == 16)
        assert not carries()
        faults.clear()
        await send(namesrv_addr, "T", 4)
        await until(lambda: len(seen.messages) == 20)
        await send(namesrv_addr, "T", 4)
        await until(carries)
