"""From a path and bytes to a handler and back: statuses, deadlines, streams."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest
from pocketmq.broker.errors import Refusal
from pocketmq.grpc_endpoint import messages as m
from pocketmq.grpc_endpoint.calls.handler import (
    ANSWERS_LATER,
    Deferred,
    GrpcStatus,
    Handler,
    RpcFailed,
    RpcRefused,
)
from pocketmq.grpc_endpoint.calls.rpc_call import Calls, RpcCall
from pocketmq.grpc_endpoint.http2.limits import Limits
from pocketmq.grpc_endpoint.http2.port import Http2Port
from pocketmq.grpc_endpoint.messages.service import BY_NAME, REQUEST_BYTES
from pocketmq.protocol.wire.response_codes import ResponseCode

from grpc_client import GrpcClient, RpcError, framed

OK = m.QueryRouteResponse(status=m.OK)


class Part:
    """What the handlers have as their first argument: each test says what they do."""

    def __init__(self, act: Callable[[Any, RpcCall], Any]) -> None:
        self.act = act
        self.calls: list[RpcCall] = []
        self.cancelled: list[RpcCall] = []
        self.closed = 0


def query_route(part: Part, request: m.QueryRouteRequest, call: RpcCall) -> m.QueryRouteResponse | Deferred:
    part.calls.append(call)
    call.when_cancelled(lambda: part.cancelled.append(call))
    result: m.QueryRouteResponse | Deferred = part.act(request, call)
    return result


class Stream:
    def __init__(self, part: Part, call: RpcCall) -> None:
        self._part, self._call = part, call

    def received(self, message: m.TelemetryCommand) -> None:
        self._part.act(message, self._call)

    def closed(self) -> None:
        self._part.closed += 1
        self._call.end()  # as a telemetry stream does: nothing of a refusal may be lost by it


def telemetry(part: Part, call: RpcCall) -> Stream:
    part.calls.append(call)
    return Stream(part, call)


def handlers(part: Part) -> dict[str, Handler]:
    of = {"QueryRoute": partial(query_route, part), "Telemetry": partial(telemetry, part)}
    return {BY_NAME[name].path: Handler(BY_NAME[name], function) for name, function in of.items()}


class LoopTimers:
    """As the broker's timers, on the loop."""

    def call_later(self, seconds: float, callback: Callable[[], None], *, is_event: bool = True) -> Any:
        return asyncio.get_running_loop().call_later(seconds, callback)


@contextlib.asynccontextmanager
async def serving(act: Callable[[Any, RpcCall], Any]) -> AsyncIterator[tuple[GrpcClient, Part, Http2Port]]:
    part = Part(act)
    timers: Any = LoopTimers()
    port = Http2Port(Calls(handlers(part), timers), Limits(), None)
    number = await port.bind("127.0.0.1", 0)
    await port.serve()
    async with GrpcClient.connected(number) as client:
        yield client, part, port
    await port.stop()


async def test_what_a_handler_returns_is_the_reply_and_metadata_reach_it() -> None:
    async with serving(lambda request, call: OK) as (client, part, _):
        assert await client.ask(m.QueryRouteRequest(), client_id="me") == OK
        (call,) = part.calls
        assert (call.rpc.name, call.client_id, call.language) == ("QueryRoute", "me", "JAVA")
        assert call.peer.startswith("127.0.0.1:")
        assert call.remaining_seconds is None


async def test_refusals_stand_inside_the_reply() -> None:
    errors = [
        (RpcRefused(m.Code.ILLEGAL_TOPIC, "no"), m.Code.ILLEGAL_TOPIC),
        (Refusal(ResponseCode.SYSTEM_BUSY, "no"), m.Code.TOO_MANY_REQUESTS),
        (Refusal(ResponseCode.TOPIC_NOT_EXIST, "no"), m.Code.INTERNAL_SERVER_ERROR),
    ]

    def act(request: Any, call: RpcCall) -> Any:
        raise errors[len(part.calls) - 1][0]

    async with serving(act) as (client, part, _):
        for _, code in errors:
            reply = await client.ask(m.QueryRouteRequest())
            assert reply.status == m.Status(code=code, message="no")


async def test_a_mistake_of_ours_is_logged_and_answered_50001(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(lambda request, call: 1 // 0) as (client, _, _):
        reply = await client.ask(m.QueryRouteRequest())
    assert reply.status.code == m.Code.INTERNAL_SERVER_ERROR
    assert "division" in reply.status.message
    assert [record.getMessage().split(" of ")[0] for record in caplog.records] == ["QueryRoute"]


async def test_a_refusal_that_is_no_unicode_is_still_answered() -> None:
    """The name of a file, for example."""

    def act(request: Any, call: RpcCall) -> Any:
        raise RpcRefused(m.Code.INTERNAL_SERVER_ERROR, "\ud800 is full")

    async with serving(act) as (client, _, _):
        assert (await client.ask(m.QueryRouteRequest())).status.message == "? is full"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "Half-closed without a request"),
        (framed(b"") + framed(b""), "Too many requests"),
        (framed(b"\x0a\x09x"), "Invalid protobuf byte sequence"),
    ],
    ids=["none", "two", "truncated"],
)
async def test_a_unary_call_has_one_request(data: bytes, text: str, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(lambda request, call: OK) as (client, part, _):
        with caplog.at_level(logging.WARNING, "pocketmq.grpc"), pytest.raises(RpcError) as error:
            await client.open("QueryRoute", data).all()
        assert (error.value.status, error.value.text) == (13, text)
        assert not part.calls
        assert len(caplog.records) == 1
        assert await client.ask(m.QueryRouteRequest()) == OK


async def test_a_request_may_be_as_long_as_its_rpc_needs() -> None:
    """The limit of the port is that of all rpcs together: 130 MiB are copied and read on the loop."""
    async with serving(lambda request, call: OK) as (client, part, _):
        for size, status in ((REQUEST_BYTES, 0), (REQUEST_BYTES + 1, 8)):
            length = size - 5
            unknown = b"\xfa\x7f" + bytes((length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14))
            unknown += bytes(length)
            call = client.open("QueryRoute", framed(unknown))
            if status:
                with pytest.raises(RpcError) as error:
                    await call.all()
                assert (error.value.status, len(unknown)) == (status, size)
            else:
                assert await call.all() == [OK]
        assert len(part.calls) == 1


async def test_a_held_call_is_answered_later_or_expires() -> None:
    async with serving(lambda request, call: ANSWERS_LATER) as (client, part, _):
        late = client.open("QueryRoute", m.QueryRouteRequest(), timeout="5S")
        await client.ping()
        part.calls[0].answer(OK)
        part.calls[0].answer(OK)  # once more: nothing
        assert await late.all() == [OK]
        with pytest.raises(RpcError) as error:
            await client.open("QueryRoute", m.QueryRouteRequest(), timeout="30m").all()
        assert error.value.status == GrpcStatus.DEADLINE_EXCEEDED
        assert part.cancelled == [part.calls[1]]
        part.calls[1].answer(OK)


async def test_a_cancelled_call_tells_its_handler() -> None:
    async with serving(lambda request, call: ANSWERS_LATER) as (client, part, _):
        call = client.open("QueryRoute", m.QueryRouteRequest())
        await client.ping()
        call.cancel()
        await client.ping()
        assert part.cancelled == part.calls
        told: list[bool] = []
        part.calls[0].when_cancelled(lambda: told.append(True))
        assert told == [True]


async def test_streams_both_ways_end_with_the_client_with_a_refusal_and_with_a_failure() -> None:
    def act(command: m.TelemetryCommand, call: RpcCall) -> None:
        if not command.HasField("status"):
            call.send(command)
        elif command.status.code == m.Code.BAD_REQUEST:
            raise RpcRefused(m.Code.UNAUTHORIZED, "who?")
        else:
            raise RpcFailed(GrpcStatus.INVALID_ARGUMENT, "no")

    async with serving(act) as (client, part, _):
        talking = client.open("Telemetry")
        await client.ping()
        assert talking.headers[":status"] == "200"  # some clients wait for the headers alone
        talking.send(m.TelemetryCommand())
        assert await talking.next() == m.TelemetryCommand()
        talking.half_close()
        assert await talking.next() is None
        refused = client.open("Telemetry")
        refused.send(m.TelemetryCommand(status=m.Status(code=m.Code.BAD_REQUEST)))
        assert [one.status.code for one in await refused.all()] == [m.Code.UNAUTHORIZED]
        failed = client.open("Telemetry")
        failed.send(m.TelemetryCommand(status=m.Status(code=m.Code.OK)))
        with pytest.raises(RpcError, match="3: no"):
            await failed.all()
        gone = client.open("Telemetry")
        await client.ping()
        gone.cancel()
        await client.ping()
        assert part.closed == 4


async def test_the_stop_of_the_port_ends_streams_and_lets_unary_calls_finish() -> None:
    async with serving(lambda request, call: ANSWERS_LATER) as (client, part, port):
        stream = client.open("Telemetry")
        held = client.open("QueryRoute", m.QueryRouteRequest())
        await client.ping()
        stopping = asyncio.create_task(port.stop())
        assert await stream.next() is None
        part.calls[1].answer(OK)
        assert await held.all() == [OK]
        await stopping
