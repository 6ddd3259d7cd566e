"""The port as a whole: opened by option, key or first use; one call through all layers; refused where it cannot be."""

import asyncio
import contextlib
import functools
import json
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.errors import StartError
from pocketmq.console.metrics import metrics_text
from pocketmq.grpc_endpoint import messages
from pocketmq.grpc_endpoint.calls.inspection import (
    CHECK,
    REFLECT,
    WATCH,
    HealthCheckRequest,
    ServerReflectionRequest,
    ServingStatus,
)
from pocketmq.grpc_endpoint.calls.rpc_call import SEND_BYTES
from pocketmq.grpc_endpoint.clients.clients import (
    MAX_ALL_SETTINGS_BYTES,
    MAX_SETTINGS_BYTES,
    MAX_SETTINGS_TOPICS,
)
from pocketmq.grpc_endpoint.endpoint import LEAST_PORT_BYTES, MOST_CALLS
from pocketmq.grpc_endpoint.http2.connection import PASS_REQUESTS
from pocketmq.grpc_endpoint.http2.frames import MAX_SETTINGS
from pocketmq.grpc_endpoint.http2.framing import INFLATED_MORE_BYTES, INFLATED_TIMES
from pocketmq.grpc_endpoint.http2.header_blocks import BLOCK_BYTES, HEADER_LIST_BYTES
from pocketmq.grpc_endpoint.http2.limits import CONTROL_FRAMES, RESETS, SETTINGS, SMALL_WINDOW, Limits
from pocketmq.grpc_endpoint.http2.outgoing import WRITE_BYTES
from pocketmq.grpc_endpoint.messages.decoding import VALUES
from pocketmq.grpc_endpoint.messages.service import REQUEST_BYTES
from pocketmq.testing import EmbeddedServer

from grpc_calls import new_message, send
from grpc_client import GrpcClient, RpcError

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "grpc.md"
TOPIC = messages.Resource(name="T")


def sent(body: bytes, message_id: str = "01AA") -> messages.SendMessageRequest:
    return send(new_message("T", body, message_id))


async def test_the_route_names_the_bound_port() -> None:
    async with EmbeddedServer(grpc_port=0) as server, GrpcClient.connected(server.grpc_endpoint) as client:
        route = await client.ask(messages.QueryRouteRequest(topic=TOPIC))
        host, port = server.grpc_endpoint.split(":")
    address = route.message_queues[0].broker.endpoints.addresses[0]
    assert (address.host, address.port) == (host, int(port))


@pytest.mark.parametrize("port", ["None", "0"])
def test_protobuf_is_loaded_with_the_port_only(port: str) -> None:
    """It takes a remoting client's server 10 ms and 4 MiB."""
    program = (
        "import sys\n"
        "from pocketmq.testing import EmbeddedServer, RocketMQ\n"
        f"with EmbeddedServer(grpc_port={port}) as server:\n"
        "    RocketMQ(server).send('orders', 'one')\n"
        "print('google.protobuf' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(port == "0")


async def test_first_use_opens_the_port_of_a_server_without_one() -> None:
    async with EmbeddedServer() as server:
        assert not server.has_grpc_port
        async with GrpcClient.connected(server.grpc_endpoint) as client:
            assert (await client.ask(sent(b"late"))).status == messages.OK
        assert server.grpc_endpoint == server.grpc_endpoint


async def test_a_stopped_server_starts_again_with_its_port() -> None:
    server = EmbeddedServer(grpc_port=0)
    for _ in range(2):
        with server:
            async with GrpcClient.connected(server.grpc_endpoint) as client:
                assert (await client.ask(sent(b"again"))).status == messages.OK


def test_the_old_line_has_no_grpc_port() -> None:
    with pytest.raises(
        StartError, match=r"grpcServerPort needs emulate=5: the 4\.9 line has no gRPC clients"
    ):
        EmbeddedServer(grpc_port=0, emulate="4.9").start()
    with EmbeddedServer(emulate="4.9") as server, pytest.raises(StartError, match="needs emulate=5"):
        _ = server.grpc_endpoint


def test_a_port_in_use_is_one_line() -> None:
    with (
        EmbeddedServer(grpc_port=0) as server,
        pytest.raises(StartError, match=r"cannot listen on 127\.0\.0\.1:\d+ \(gRPC\)"),
    ):
        EmbeddedServer(grpc_port=int(server.grpc_endpoint.split(":")[1])).start()


async def test_what_no_handler_serves_is_refused_as_by_the_official_proxy() -> None:
    """Methods and services that do not exist, and rpcs that no client calls."""
    service = "apache.rocketmq.v2.MessagingService"
    texts = {path: f"Method not found: {path[1:]}" for path in (f"/{service}/Nothing", "/a.b/C", "/")}
    for name in ("PullMessage", "UpdateOffset", "GetOffset", "QueryOffset"):
        texts[name] = f"Method {service}/{name} is unimplemented"
    async with EmbeddedServer(grpc_port=0) as server, GrpcClient.connected(server.grpc_endpoint) as client:
        for called, text in texts.items():
            with pytest.raises(RpcError) as error:
                await client.open(called, b"").all()
            assert (error.value.status, error.value.text) == (12, text)


def test_serve_writes_the_address_to_the_second_line_and_to_the_file(tmp_path: Path) -> None:
    """Without a process: `cli/serve.py` hands the port over as something that runs beside the node."""

    from pocketmq.broker.process import write_ports
    from pocketmq.grpc_endpoint.endpoint import endpoint_beside

    with EmbeddedServer(grpcServerPort=0) as server:

        async def beside() -> None:
            async with endpoint_beside(server.node) as addresses:
                assert list(addresses) == ["GRPC_ENDPOINT"]
                write_ports(tmp_path / "ports", server.node, addresses)

        server.run(beside())
    ports = json.loads((tmp_path / "ports").read_text())
    assert ports["grpc"].startswith("127.0.0.1:")


@pytest.mark.parametrize(("strict", "is_used"), [(False, True), (True, False)])
async def test_a_certificate_that_is_named_is_used_unless_strict(strict: bool, is_used: bool) -> None:
    """The official proxy ignores it while tlsTestModeEnable is true, the default."""
    with pytest.raises(StartError, match="tlsCertPath=/no/cert") if is_used else contextlib.nullcontext():
        async with EmbeddedServer(
            grpc_port=0, grpcStrict=strict, tlsCertPath="/no/cert", tlsKeyPath="/no/key"
        ):
            pass


async def test_metrics_count_grpc_calls_by_rpc_and_code() -> None:
    async with EmbeddedServer(grpc_port=0) as server, GrpcClient.connected(server.grpc_endpoint) as client:
        await client.ask(sent(b"one"))
        await client.ask(sent(b""))
        with pytest.raises(RpcError):
            await client.open("SyncLiteSubscription", b"bad").all()
        text = server.run(metrics_text(server.node, functools.partial(asyncio.sleep, 0))).decode()
    counted = [line for line in text.splitlines() if line.startswith("pocketmq_grpc_calls_total")]
    assert any('code="OK"' in line and 'rpc="SendMessage"' in line for line in counted)
    assert any('code="MESSAGE_BODY_EMPTY"' in line for line in counted)
    assert any(
        line.startswith("pocketmq_grpc_connections") and line.endswith(" 1.0") for line in text.splitlines()
    )


async def test_tools_find_the_service_by_reflection_and_ask_for_its_health() -> None:
    """What grpcurl does: list the services, fetch the file of one, read it with the official library."""
    async with EmbeddedServer(grpc_port=0) as server, GrpcClient.connected(server.grpc_endpoint) as client:
        for reflect in REFLECT:
            stream = client.open_raw(headers_of(reflect.path), reflect)
            stream.send(ServerReflectionRequest(list_services=""))
            listed = (await stream.next()).list_services_response
            assert "apache.rocketmq.v2.MessagingService" in [one.name for one in listed.service]
            stream.send(ServerReflectionRequest(file_containing_symbol="apache.rocketmq.v2.MessagingService"))
            (data,) = (await stream.next()).file_descriptor_response.file_descriptor_proto
            found = FileDescriptorProto.FromString(data)
            methods = {
                one.name: (one.client_streaming, one.server_streaming) for one in found.service[0].method
            }
            assert (methods["SendMessage"], methods["Telemetry"]) == ((False, False), (True, True))
            stream.send(ServerReflectionRequest(file_by_filename="google/protobuf/duration.proto"))
            assert (await stream.next()).file_descriptor_response
            stream.send(ServerReflectionRequest(file_containing_symbol="no.such.Thing"))
            assert (await stream.next()).error_response.error_code == 5
            stream.half_close()
            assert await stream.next() is None
        check = client.open_raw(headers_of(CHECK.path), CHECK, HealthCheckRequest())
        assert [one.status for one in await check.all()] == [ServingStatus.SERVING]
        unknown = client.open_raw(headers_of(CHECK.path), CHECK, HealthCheckRequest(service="x"))
        with pytest.raises(RpcError, match="5: unknown service x"):
            await unknown.all()
        watch = client.open_raw(headers_of(WATCH.path), WATCH, HealthCheckRequest(service="x"))
        assert (await watch.next()).status == ServingStatus.SERVICE_UNKNOWN
        watch.cancel()


def headers_of(path: str) -> dict[str, str]:
    sent = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "test"}
    return sent | {"content-type": "application/grpc"}


def test_the_limits_of_the_document_are_those_of_the_program() -> None:
    text = DOCUMENT.read_text(encoding="utf-8").partition("## Limits")[2].partition("\n## ")[0]
    limits, config = Limits(), BrokerConfig().endpoint
    for wanted in (
        f"| a request | with messages to store {SEND_BYTES >> 20} MiB, or `maxMessageSize` and 1 MiB more;",
        f"all others {REQUEST_BYTES >> 20} MiB. `grpcMaxInboundMessageSize` ",
        f"({config.grpc_max_inbound_message_size >> 20} MiB) where it is less",
        f"requests and unread replies: {LEAST_PORT_BYTES >> 20} MiB",
        f"| all clients together, calls | {limits.port_calls:,} open ones",
        f"| connections | {limits.connections:,} at once |",
        f"| headers | {HEADER_LIST_BYTES >> 10} KiB, as the official server",
        f"a compressed block of {BLOCK_BYTES >> 10} KiB |",
        f"at most {MOST_CALLS:,} a connection",
        f"| replies that a client does not read | {limits.unread_bytes >> 20} MiB",
        f"because it breaks a rule | {RESETS:,} in ten seconds |",
        f"| {CONTROL_FRAMES:,} in ten seconds, and four for each call |",
        f"| SETTINGS | {SETTINGS} in ten seconds, {MAX_SETTINGS} entries each |",
        f"windows opened by less than {SMALL_WINDOW >> 10} KiB",
        f"becomes at most {INFLATED_TIMES} times as long and {INFLATED_MORE_BYTES >> 20} MiB longer",
        f"the first {WRITE_BYTES >> 10} KiB do not count",
        f"| {PASS_REQUESTS} requests or {limits.pass_seconds * 1000:.0f} ms, then the others |",
        f"| {MAX_SETTINGS_TOPICS:,} topics, {MAX_SETTINGS_BYTES >> 10} KiB; of all clients",
        f"of all clients {MAX_ALL_SETTINGS_BYTES >> 20} MiB |",
        f"| values in one message | {VALUES:,}, where one that is a message counts as two; nested 100 deep |",
        "`grpcClientIdleTimeMills` (two minutes)",
    ):
        assert wanted in text, wanted
    assert config.grpc_client_idle_time_mills == 120_000
    assert limits.port_bytes == LEAST_PORT_BYTES
