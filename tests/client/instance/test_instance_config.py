"""Clients of one instance name share one instance, so its settings must agree."""

from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import pytest
from pocketmq.client import AclClientRPCHook, AdminClient, ClientError, Producer, PullConsumer, RPCHook
from pocketmq.client.pulling.lite_pull_consumer import LitePullConsumer
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic

from client_waits import send


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"namesrv_addr": "127.0.0.1:2"}, "namesrv_addr"),
        ({"use_tls": True}, "use_tls"),
        ({"vip_channel_enabled": True}, "vip_channel_enabled"),
        ({"heartbeat_broker_interval": 1}, "heartbeat_broker_interval"),
        ({"hooks": [RPCHook()]}, "hooks"),
        ({"hooks": [AclClientRPCHook("user", "other secret")]}, "hooks"),
    ],
)
async def test_a_client_that_contradicts_the_instance_it_would_share_is_refused(
    namesrv_addr: str, changed: dict[str, Any], named: str
) -> None:
    options: dict[str, Any] = {
        "namesrv_addr": namesrv_addr,
        "instance_name": "shared",
        "hooks": [AclClientRPCHook("user", "secret")],
    }
    async with Producer("a", **options) as first:
        with pytest.raises(
            ClientError, match=f"instance_name='shared' is in use with other values of {named}: "
        ):
            await Producer("b", **{**options, **changed}).start()
        assert (await first.send("T", b"x")).message_id, "the first client is not disturbed"


async def test_clients_that_agree_share_an_instance_whatever_their_kind(namesrv_addr: str) -> None:
    options: dict[str, Any] = {
        "namesrv_addr": namesrv_addr,
        "instance_name": "shared",
        "enable_stream_request_type": False,
    }
    async with (
        Producer("a", **options, hooks=[AclClientRPCHook("user", "secret")]) as producer,
        LitePullConsumer("b", **options, hooks=[AclClientRPCHook("user", "secret")]) as consumer,
    ):
        assert producer._running is consumer._running
    assert "secret" not in repr(AclClientRPCHook("user", "secret"))


CLIENTS: list[Callable[..., Any]] = [AdminClient, partial(Producer, "p"), partial(PullConsumer, "g")]


@pytest.mark.parametrize("makers", list(permutations(CLIENTS, 2)))
async def test_a_client_outlives_another_of_its_instance(namesrv_addr: str, makers: Any) -> None:
    await send(namesrv_addr, "T", 1)
    first, second = (make(namesrv_addr=namesrv_addr, instance_name="shared") for make in makers)
    async with first:
        async with second:
            assert first.client_id == second.client_id
        assert await first._running.connections.call_for_body(namesrv_addr, GetRouteInfoByTopic(topic="T"))


async def test_traces_of_clients_that_do_not_agree_have_instances_of_their_own(namesrv_addr: str) -> None:
    async with (
        Producer("a", namesrv_addr=namesrv_addr, enable_trace=True, hooks=[RPCHook()]) as one,
        Producer("b", namesrv_addr=namesrv_addr, enable_trace=True, hooks=[RPCHook()]) as other,
    ):
        first, second = one._trace._sender, other._trace._sender
        assert first is not None
        assert second is not None, "its trace has started"
        assert first._running is not second._running
