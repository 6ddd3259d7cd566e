"""Bad input at the whole port, which no rule beside its part covers: it ends with an official code or a closed
connection, one line in the log at most, and others are unaffected.

The single rules are in `http2/test_bad_peers.py`, `http2/test_port_limits.py`, `messages/test_decoding.py`,
`test_keys.py` and beside the handlers; random input in `test_random_calls.py` and `http2/test_beside_h2.py`.
"""

import logging
from collections.abc import Awaitable, Callable

import pytest
from pocketmq.grpc_endpoint import messages as m
from pocketmq.grpc_endpoint.http2.frames import ErrorCode, frame
from pocketmq.testing import EmbeddedServer

from grpc_client import GrpcClient
from grpc_companion import T, companion, sent
from http2_echo import CALL, PREFACE, goaway_in, raw_peer
from waiting import until


async def header_bomb(server: EmbeddedServer) -> object:
    """A header of 4,000 bytes, and 4,000 times its place in the table."""
    bomb = CALL + b"\x40\x01a\x7f\xa1\x1e" + b"x" * 4000 + b"\xbe" * 4000
    async with raw_peer(int(server.grpc_endpoint.rpartition(":")[2])) as peer:
        peer.write(PREFACE + frame(1, 4, 1, bomb))
        found = goaway_in(await peer.rest())
        return None if found is None else ErrorCode(found[0])


async def dates(server: EmbeddedServer) -> object:
    """Clocks in 1970, in 2262 and before the epoch, and a date of the request that is none."""
    codes = set()
    async with GrpcClient.connected(server.grpc_endpoint) as client:
        for born_ms in (1, 9_223_372_036_000, -1):
            properties = m.SystemProperties(message_id="far", born_timestamp=m.timestamp_of(born_ms))
            message = m.Message(topic=T, body=b"x", system_properties=properties)
            codes.add((await client.ask(m.SendMessageRequest(messages=[message]))).status.code)
        call = client.open("SendMessage", sent(), x_mq_date_time="yesterday")
        codes.add((await call.next()).status.code)
    return codes


@pytest.mark.parametrize(
    ("attempt", "outcome", "lines"),
    [(header_bomb, ErrorCode.ENHANCE_YOUR_CALM, 1), (dates, {m.Code.OK}, 0)],
    ids=["header bomb", "dates"],
)
async def test_bad_input_ends_with_its_code_and_harms_nobody(
    caplog: pytest.LogCaptureFixture,
    attempt: Callable[[EmbeddedServer], Awaitable[object]],
    outcome: object,
    lines: int,
) -> None:
    async with companion(grpc_port=0) as rocketmq, GrpcClient.connected(rocketmq.grpc_endpoint) as other:
        assert (await other.ask(m.QueryRouteRequest(topic=T))).status == m.OK
        with caplog.at_level(logging.WARNING, "pocketmq"):
            found = await attempt(rocketmq.server)
            assert (await other.ask(m.QueryRouteRequest(topic=T))).status == m.OK
        assert found == outcome
        assert len(caplog.records) == lines, caplog.text
        beside = rocketmq.server.node.side_servers[0]
        await until(lambda: beside.open_connections == 1)
