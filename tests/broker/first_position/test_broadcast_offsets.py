"""Offsets of broadcasting consumers: which clients are kept, and when a client expires.

What pulls are answered is in the recorded conversation `groups`.
"""

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.first_position import broadcast_offsets
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import VirtualClock

from broker_fakes import Asked, FakeConnection, MakeBroker, ask, pull_request, store_message

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


async def test_the_forgotten_leave_their_lowest_offset_behind(filled: Broker, clock: VirtualClock) -> None:
    await pull(filled, 4, "fast")
    await pull(filled, 2, "slow")
    list(filled.first_position.broadcasts.expire())
    assert filled.offsets.query("Orders", "G@broadcast", 0) == 2
    clock.advance(121_000)
    list(filled.first_position.broadcasts.expire())
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
