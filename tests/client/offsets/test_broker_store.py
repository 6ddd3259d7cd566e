"""What the answer to a question for a group's offset means, and what a user gets who asks for it."""

from typing import Any

import pytest
from pocketmq.client import LitePullConsumer, MessageQueue, NotReachable, PullConsumer, RequestRefused
from pocketmq.client.instance.instance import ClientInstance
from pocketmq.client.instance.instance_config import instance_config
from pocketmq.client.offsets.broker_store import RemoteBrokerOffsetStore
from pocketmq.client.offsets.offset_store import NO_OFFSET, OFFSET_UNREADABLE
from pocketmq.client.settings.client_settings import ClientSettings
from pocketmq.protocol.requests.offset import QueryConsumerOffset
from pocketmq.protocol.wire.response_codes import ResponseCode

from client_network import NAMESRV, Host, Network, broker, in_network, reply, timed

QUEUE = MessageQueue("T", "b", 0)


def answers(code: int) -> Host:
    fields = {"offset": "7"} if code == 0 else {}
    return broker({QueryConsumerOffset.code: lambda asked: reply(fields, code=code)})


@in_network
async def test_only_not_found_means_that_no_offset_is_stored(network: Network) -> None:
    network.cluster("b")
    instance = ClientInstance(instance_config(ClientSettings(namesrv_addr=NAMESRV)))
    found = {}
    for code in set(ResponseCode) - {ResponseCode.GO_AWAY}:
        network.hosts["b:1"] = answers(code)
        found[code] = await RemoteBrokerOffsetStore(instance, "g").in_store(QUEUE)
    await instance.shutdown()
    assert found.pop(ResponseCode.SUCCESS) == 7
    assert found.pop(ResponseCode.QUERY_NOT_FOUND) == NO_OFFSET
    assert set(found.values()) == {OFFSET_UNREADABLE}


@pytest.mark.parametrize("kind", [PullConsumer, LitePullConsumer])
@pytest.mark.parametrize(("code", "outcome"), [(0, 7), (22, None), (1, RequestRefused), (-1, NotReachable)])
@in_network
async def test_a_committed_offset_that_cannot_be_asked_for_is_an_error(
    network: Network, kind: Any, code: int, outcome: Any
) -> None:
    network.cluster("b")
    network.hosts["b:1"] = answers(code)
    async with kind("g", namesrv_addr=NAMESRV) as consumer:
        if code == -1:
            del network.hosts["b:1"]
        _, committed = await timed(consumer.committed(QUEUE))
    if isinstance(outcome, type):
        assert (type(committed), committed.retriable) == (outcome, True)
    else:
        assert committed == outcome
