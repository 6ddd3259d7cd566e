"""Offsets of broadcasting consumers: which clients are kept, the offset of the next pull, when a client expires.

The answers to pulls are compared with 5.5.0 in `tests/conformance/requests/test_group_rules.py`.
"""

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.first_position import broadcast_offsets
from pocketmq.broker.membership.client import Client
from pocketmq.protocol.bodies.client import tag_subscription
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import VirtualClock

from broker_fakes import Asked, FakeConnection, MakeBroker, ask, connect, pull_request, store_message

MOVED = ResponseCode.PULL_OFFSET_MOVED


@pytest.fixture
async def filled(broker: Broker) -> Broker:
    broker.topics.create_for_send("Orders", "TBW102", 1)
    for _ in range(5):
        store_message(broker, "Orders")
    return broker


async def pull(
    broker: Broker, offset: int, client: str | None = None, connection: FakeConnection | None = None
) -> Asked:
    source = {} if client is None else {"request_source": 1, "proxy_forward_client_id": client}
    request = pull_request(offset, consumer_group="G", topic="Orders", max_msg_nums=1, **source)
    return await ask(broker, request, connection=connection)


def goes_on_at(answer: Asked) -> tuple[int, int]:
    return answer.code, int(answer.fields["nextBeginOffset"])


async def test_a_new_one_begins_as_any_consumer_would_and_then_where_it_was(filled: Broker) -> None:
    assert goes_on_at(await pull(filled, -1, "one")) == (MOVED, 0)
    assert (await pull(filled, 3, "one")).code == 0
    assert goes_on_at(await pull(filled, -1, "one")) == (MOVED, 3)
    assert goes_on_at(await pull(filled, -1, "two")) == (MOVED, 0)


async def test_a_client_that_leaves_the_proxy_gets_its_last_offset(filled: Broker) -> None:
    connection = connect(filled)
    filled.membership.consumers.register(
        "G",
        Client(connection, "one", "JAVA", 0, filled.clock.now_ms()),
        consume_type="CONSUME_PASSIVELY",
        message_model="BROADCASTING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscriptions=[tag_subscription("Orders", "*", sub_version=1)],
    )
    await pull(filled, 4, "one")
    assert goes_on_at(await pull(filled, 1, connection=connection)) == (MOVED, 4)
    assert (await pull(filled, 1, connection=connection)).code == 0, "told once"


async def test_the_forgotten_leave_their_lowest_offset_behind(filled: Broker, clock: VirtualClock) -> None:
    await pull(filled, 4, "fast")
    await pull(filled, 2, "slow")
    list(filled.first_position.broadcasts.expire(clock.now_ms()))
    assert filled.offsets.query("Orders", "G@broadcast", 0) == 2
    clock.advance(121_000)
    list(filled.first_position.broadcasts.expire(clock.now_ms()))
    assert goes_on_at(await pull(filled, -1, "new")) == (MOVED, 2)
    assert filled.offsets.topics_of("G@broadcast") == set(), "no group an administrator would see"


async def test_clustered_consumers_and_a_setting_that_is_off(broker_maker: MakeBroker) -> None:
    broker = broker_maker(enable_broadcast_offset_store=False)
    broker.topics.create_for_send("Orders", "TBW102", 1)
    store_message(broker, "Orders")
    assert (await pull(broker, 0)).code == 0
    first = await pull(broker, -1, "one")
    second = await pull(broker, -1)
    assert goes_on_at(first) == goes_on_at(second)


async def test_clients_behind_proxies_have_a_limit(filled: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy names them as it likes: each name was kept for two minutes."""
    monkeypatch.setattr(broadcast_offsets, "MAX_CLIENTS", 3)
    broadcasts = filled.first_position.broadcasts
    for client_id in ("a", "b", "x" * 300, "c", "d"):
        await pull(filled, 1, client_id)
    (clients,) = broadcasts._clients.values()
    assert clients.keys() == {"a", "b", "c"}
    assert goes_on_at(await pull(filled, -1, "a")) == (MOVED, 1)
