"""The `repr` of all clients, and a warning if one is never shut down."""

import asyncio
import gc
import warnings

import pytest
from pocketmq.client import AdminClient, ClientClosed, Producer, PullConsumer


async def test_repr_names_the_group_and_the_state(namesrv_addr: str) -> None:
    producer = Producer("shop", namesrv_addr=namesrv_addr)
    assert repr(producer) == "<Producer 'shop' not started>"
    async with producer:
        assert repr(producer) == "<Producer 'shop' running>"
        with pytest.raises(ClientClosed, match="producer of shop was started before: a client starts once"):
            await producer.start()
    assert repr(producer) == "<Producer 'shop' shut down>"
    async with AdminClient(namesrv_addr=namesrv_addr) as admin:
        assert repr(admin) == "<AdminClient running>"


@pytest.mark.parametrize("is_shut_down", [False, True])
def test_a_client_that_is_never_shut_down_is_a_resource_warning(is_shut_down: bool) -> None:
    async def forget() -> None:
        namesrv_addr = "127.0.0.1:1"  # a start needs no server
        for client in (
            Producer("p", namesrv_addr=namesrv_addr),
            PullConsumer("g", namesrv_addr=namesrv_addr),
        ):
            await client.start()
            if is_shut_down:
                await client.shutdown()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(forget())
        gc.collect()
    found = {str(one.message) for one in caught if "never shut down" in str(one.message)}
    expected = {
        "<Producer 'p' running> was never shut down",
        "<PullConsumer 'g' running> was never shut down",
    }
    assert found == (set() if is_shut_down else expected)
