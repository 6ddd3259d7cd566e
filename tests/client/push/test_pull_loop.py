"""What the pulls of a push consumer ask for; the values are those of the official client."""

from pathlib import Path
from typing import Any

import pytest
from pocketmq.client.hooks.rpc_hooks import RPCHook
from pocketmq.client.push.push_consumer import PushConsumer
from pocketmq.protocol.message.flags import PULL_COMMIT_OFFSET
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.protocol.wire.command import RawBody
from pocketmq.protocol.wire.schema import Request
from pocketmq.testing.faults.faults import Faults

from client_waits import Seen, consuming, send
from waiting import until


class Pulls(RPCHook):
    """Keeps the pulls of topic T."""

    def __init__(self) -> None:
        self.all: list[PullMessage] = []

    def before_request(
        self, address: str, request: Request[Any], fields: dict[str, str], body: RawBody | None
    ) -> None:
        if isinstance(request, PullMessage) and request.topic == "T":
            self.all.append(request)


@pytest.mark.parametrize(
    ("options", "sys_flag", "expression"),
    [
        ({}, 2, None),
        ({"post_subscription_when_pull": True}, 6, "a||b"),
        ({"message_model": "BROADCASTING"}, 2, None),
    ],
)
async def test_a_pull_is_held_and_sends_the_expression_only_if_it_is_told_to(
    namesrv_addr: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    sys_flag: int,
    expression: str | None,
) -> None:
    monkeypatch.setenv("ROCKETMQ_CLIENT_LOCAL_OFFSET_STORE_DIR", str(tmp_path / "offsets"))
    pulls = Pulls()
    await send(namesrv_addr, "T", 1)
    async with PushConsumer(
        "g", Seen(), namesrv_addr=namesrv_addr, subscription={"T": "a||b"}, hooks=[pulls], **options
    ):
        await until(lambda: len({pull.queue_id for pull in pulls.all}) == 4)
    assert {pull.sys_flag & ~PULL_COMMIT_OFFSET for pull in pulls.all} == {sys_flag}
    assert {pull.subscription for pull in pulls.all} == {expression}
    assert {(pull.suspend_timeout_millis, pull.max_msg_nums) for pull in pulls.all} == {(15_000, 32)}
    if options.get("message_model"):
        assert {(pull.commit_offset, pull.sys_flag) for pull in pulls.all} == {(0, 2)}


async def test_a_pull_carries_no_offset_before_the_broker_has_accepted_one_of_the_topic(
    namesrv_addr: str, faults: Faults
) -> None:
    faults.refuse(code="UPDATE_CONSUMER_OFFSET", topic="T", response="SYSTEM_ERROR", times=None)
    seen, pulls = Seen(), Pulls()
    await send(namesrv_addr, "T", 4)

    def carries() -> bool:
        return any(pull.sys_flag & PULL_COMMIT_OFFSET for pull in pulls.all)

    async with consuming(namesrv_addr, seen, hooks=[pulls]):
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
