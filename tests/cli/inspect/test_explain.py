"""`pocketmq explain`: a PocketMQ explains itself; what is found out from outside agrees with it."""

import asyncio
import json
from collections.abc import Iterator

import pytest
from pocketmq.cli.inspect.explain import verdicts_from_outside, verdicts_of
from pocketmq.client import AdminClient, Message, MessageQueue, Producer, SubscriptionGroupConfig
from pocketmq.protocol.requests.offset import Verdict
from pocketmq.testing import EmbeddedServer

from cli_runs import pocketmq

STORED, EMPTY, YOUNG, RESET = range(4)


@pytest.fixture(scope="module", params=["4.9", "5"])
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(emulate=request.param) as one:
        yield one


async def prepared(server: EmbeddedServer, group: str) -> tuple[list[Verdict], list[Verdict]]:
    """A topic whose queues stand for the rules; what the broker says of them, and what is found out from outside."""
    topic = f"T-{group}"
    async with AdminClient(namesrv_addr=server.namesrv_addr) as admin:
        async with Producer("p", namesrv_addr=server.namesrv_addr) as producer:
            for queue_id in (STORED, YOUNG, RESET):
                await producer.send(Message(topic, b"x"), queue_id=queue_id)
        if group != "newcomer":
            config = SubscriptionGroupConfig(group_name=group)
            await admin.update_group(config, cluster="DefaultCluster")
            await admin.set_offset(group, MessageQueue(topic, "broker-a", STORED), 1)
        inside = await verdicts_of(admin, group, topic)
        info = await admin.cluster_info()
        address = (info.broker_addr_table or {})["broker-a"].broker_addrs[0]
        return inside, await verdicts_from_outside(admin, group, topic, "broker-a", address, 4)


@pytest.mark.parametrize("group", ["newcomer", "regular"])
async def test_what_is_found_out_from_outside_includes_what_the_broker_says(
    server: EmbeddedServer, group: str
) -> None:
    inside, outside = await prepared(server, group)
    assert len(inside) == len(outside) == 4
    for said, found in zip(inside, outside, strict=True):
        assert said.rule in found.rule.split(" or ")
        assert (found.offset, found.from_last, found.from_first) == (
            said.offset,
            said.from_last,
            said.from_first,
        )
    if group == "newcomer":
        assert [found.rule for found in outside] == ["B4", "B6", "B4", "B4"]


def test_json_is_one_list_in_snake_case(server: EmbeddedServer) -> None:
    asyncio.run(prepared(server, "json"))
    ran = pocketmq(*["explain", "-g", "other", "-t", "T-json", "--json"], namesrv_addr=server.namesrv_addr)
    assert ran.exit_code == 0, ran.output
    verdicts = json.loads(ran.stdout)
    assert [verdict["queue_id"] for verdict in verdicts] == [0, 1, 2, 3]
    assert verdicts[YOUNG]["rule"] == "B4"
    assert verdicts[YOUNG]["from_last"] == 0
    assert ran.stdout.count("\n") == 1
