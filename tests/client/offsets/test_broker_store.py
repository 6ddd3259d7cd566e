"""What the answer to a question for a group's offset means, and what a user gets who asks for it."""

from typing import Any

import pytest
from pocketmq.client import LitePullConsumer, NotReachable, PullConsumer, RequestRefused
from pocketmq.client.instance.instance import ClientInstance
from pocketmq.client.instance.instance_config import instance_config
from pocketmq.client.offsets.broker_store import RemoteBrokerOffsetStore
from pocketmq.client.offsets.offset_store import NO_OFFSET, OFFSET_UNREADABLE
from pocketmq.client.settings.client_settings import ClientSettings
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.offset import QueryConsumerOffset
from pocketmq.protocol.wire.response_codes import ResponseCode

from client_network import Network, broker, name_server, reply, route, timed

QUEUE = MessageQueue("T", "b", 0)


def network_answering(code: int) -> Network:
    network = Network()
    network.hosts["ns:1"] = name_server({"T": route({"b": "b:1"})})
    fields = {"offset": "7"} if code == 0 else {}
    network.hosts["b:1"] = broker({QueryConsumerOffset.code: lambda asked: reply(fields, code=code)})
    return network


def test_only_not_found_means_that_no_offset_is_stored() -> None:
    def in_store(code: int) -> Any:
        async def scenario() -> int:
            instance = ClientInstance(instance_config(ClientSettings(namesrv_addr="ns:1")))
            offset = await RemoteBrokerOffsetStore(instance, "g").in_store(QUEUE)
            await instance.shutdown()
            return offset

        return network_answering(code).run(scenario)

    codes = set(ResponseCode) - {ResponseCode.GO_AWAY}
    found = {code: in_store(code) for code in codes}
    assert found.pop(ResponseCode.SUCCESS) == 7
    assert found.pop(ResponseCode.QUERY_NOT_FOUND) == NO_OFFSET
    assert set(found.values()) == {OFFSET_UNREADABLE}


@pytest.mark.parametrize("kind", [PullConsumer, LitePullConsumer])
@pytest.mark.parametrize(("code", "outcome"), [(0, 7), (22, None), (1, RequestRefused), (-1, NotReachable)])
def test_a_committed_offset_that_cannot_be_asked_for_is_an_error(kind: Any, code: int, outcome: Any) -> None:
    network = network_answering(code)

    async def scenario() -> Any:
        async with kind("g", namesrv_addr="ns:1") as consumer:
            if code == -1:
                del network.hosts["b:1"]
            return (await timed(consumer.committed(QUEUE)))[1]

    committed = network.run(scenario)
    if isinstance(outcome, type):
        assert (type(committed), committed.retriable) == (outcome, True)
    else:
        assert committed == outcome
