"""Malformed bytes, broken connections and bad peers, against a server process on free ports.

None of them kills the server, fills its memory, or keeps it from serving others. Bytes that are no frame close their
own connection without an answer, as in the official servers. Well-formed requests that are refused are in
`test_bad_requests.py`; one connection's order of work in `tests/broker/network/test_connection.py`.
"""

import contextlib
import json
import random
import signal
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from ports import fixed_port
from raw_peer import (
    GET_MAX_OFFSET,
    PULL_MESSAGE,
    SEND_MESSAGE,
    SUCCESS,
    Peer,
    ServedProcess,
    frame,
    pull_fields,
    request,
    send_fields,
)
from stopwatch import Stopwatch
from waiting import wait_until

MIB = 1 << 20
MAX_FRAME_BYTES = 16 * MIB
GET_BROKER_CONFIG = 26
IDLE_SECONDS = 1
FEW_FILES = 70
QUESTION = request(GET_MAX_OFFSET, {"topic": "t", "queueId": "0"}, opaque=7)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProcess]:
    with (
        ServedProcess(
            tmp_path_factory.mktemp("input"), ["--set", "mappedFileSizeCommitLog=33554432"]
        ) as server,
        server.no_surprise(),
    ):
        yield server
        server.assert_serves()


@pytest.fixture(params=["broker", "name server"])
def port(request: pytest.FixtureRequest, served: ServedProcess) -> int:
    return served.broker_port if request.param == "broker" else served.namesrv_port


# -- bytes that are no frames


TLS_ALERT, TLS_HANDSHAKE = 0x15, 0x16
NO_FRAMES = {
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tls": bytes.fromhex("16030100a5010000a10303") + bytes(160),
    "length_negative": struct.pack(">iI", -5, 0) + bytes(16),
    "length_above_16_mib": struct.pack(">i", MAX_FRAME_BYTES + 1) + bytes(16),
    "header_longer_than_the_frame": struct.pack(">iI", 20, 17) + bytes(16),
    "serialize_type_2": frame(b"{}", header_type=2),
    "no_header": frame(b""),
    "json_of_no_end": frame(b"[" * 200_000),
    "field_of_64_kib": request(GET_MAX_OFFSET, {"topic": "t", "queueId": "9" * 65_537}),
    "binary_cut": frame(b"\0\x1e\0", header_type=1),
}


@pytest.mark.parametrize("data", NO_FRAMES.values(), ids=NO_FRAMES)
def test_malformed_frame_closes_the_connection_without_an_answer(port: int, data: bytes) -> None:
    with Peer(port) as peer:
        peer.say(data)
        if data[0] == TLS_HANDSHAKE:  # a bad TLS handshake gets a TLS alert
            assert peer.socket.recv(1) == bytes([TLS_ALERT])
            while peer.socket.recv(64):
                pass
            return
        assert peer.is_closed_in_silence()


@pytest.mark.parametrize("data", NO_FRAMES.values(), ids=NO_FRAMES)
def test_request_before_a_malformed_frame_is_answered_first(served: ServedProcess, data: bytes) -> None:
    with served.broker() as peer:
        peer.say(QUESTION + data + QUESTION)
        reply = peer.answer()
        assert (reply.code, reply.opaque) == (SUCCESS, 7)
        assert peer.hear() is None


def test_random_bytes_close_the_connection_or_wait_for_more(port: int) -> None:
    chance = random.Random(7)
    for _ in range(200):
        with Peer(port) as peer:
            peer.say(chance.randbytes(chance.randrange(1, 200)))
            peer.socket.shutdown(socket.SHUT_WR)
            assert peer.is_closed_in_silence()


def test_random_header_in_a_good_frame_never_hangs(port: int) -> None:
    chance = random.Random(8)
    for number in range(300):
        with Peer(port) as peer:
            header = chance.randbytes(chance.randrange(21, 80))
            peer.say(
                frame(header if number % 2 else bytes(13) + header[:8] + bytes(8), header_type=number % 2)
            )
            peer.socket.shutdown(socket.SHUT_WR)
            peer.hear()


# -- frames that arrive slowly, late, or not at all


def test_frame_may_arrive_byte_by_byte(port: int) -> None:
    with Peer(port) as peer:
        for byte in request(3333, opaque=9):
            peer.say(bytes([byte]))
        assert peer.answer().opaque == 9


def test_largest_frame_is_read_and_one_byte_more_is_not(served: ServedProcess) -> None:
    empty = len(request(SEND_MESSAGE, send_fields("T", properties="")))
    with served.broker() as peer:
        peer.say(request(3333, {}, bytes(MAX_FRAME_BYTES - len(request(3333)))))
        assert peer.answer().code == 3
        peer.say(request(3333, {}, bytes(MAX_FRAME_BYTES + 1 - len(request(3333))))[:empty])
        assert peer.is_closed_in_silence()


def test_message_above_the_limit_is_refused_and_the_connection_stays_open(served: ServedProcess) -> None:
    with served.broker() as peer:
        assert peer.call(SEND_MESSAGE, send_fields("T"), bytes(5 * MIB)).code == 13
        assert peer.call(SEND_MESSAGE, send_fields("T"), b"x").code == SUCCESS


def test_a_mebibyte_of_properties_is_refused_and_the_connection_stays_open(served: ServedProcess) -> None:
    with served.broker() as peer:
        fields = send_fields("T", properties="name\x01" + "x" * MIB + "\x02")
        assert peer.call(SEND_MESSAGE, fields, b"x").code == 13
        assert peer.call(SEND_MESSAGE, send_fields("T"), b"x").code == SUCCESS


@pytest.mark.parametrize("sent", [1, 3, 4, 7, 8, 20, len(QUESTION) - 1])
def test_frame_that_ends_too_early_is_dropped_with_its_connection(port: int, sent: int) -> None:
    with Peer(port) as peer:
        peer.say(QUESTION[:sent])
        peer.socket.shutdown(socket.SHUT_WR)
        assert peer.is_closed_in_silence()


def test_a_large_frame_uses_no_memory_before_its_bytes_arrive(served: ServedProcess) -> None:
    before = served.private_bytes
    with contextlib.ExitStack() as peers:
        for _ in range(100):
            peer = peers.enter_context(served.broker())
            peer.say(struct.pack(">iI", MAX_FRAME_BYTES, 100) + bytes(1000))
        served.assert_serves()
        assert served.private_bytes - before < 20 * MIB


def test_reset_in_the_middle_of_a_frame_affects_no_other_connection(served: ServedProcess, port: int) -> None:
    files = served.open_files
    for sent in range(0, len(QUESTION), 3):
        peer = Peer(port)
        peer.say(QUESTION + QUESTION[:sent])
        peer.reset()
    served.assert_serves()
    wait_until(lambda: served.open_files <= files, "the server has closed the file")


# -- many connections and many requests


def test_500_connections_are_served_and_their_files_closed(served: ServedProcess, port: int) -> None:
    files = served.open_files
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(Peer(port)) for _ in range(500)]
        for peer in peers:
            peer.say(request(3333, opaque=5))
        for peer in peers:
            assert peer.answer().opaque == 5
    wait_until(lambda: served.open_files <= files, "the server has closed the file")


def test_server_keeps_serving_after_more_connections_than_it_may_open_files(tmp_path: Path) -> None:
    few_files = ("sh", "-c", 'ulimit -n 64; exec "$@"', "sh")
    with ServedProcess(tmp_path, command=few_files) as server:
        with contextlib.ExitStack() as stack, server.broker() as old:
            for _ in range(100):
                stack.enter_context(server.broker())
            assert old.call(GET_MAX_OFFSET, {"topic": "t", "queueId": 0}).code == SUCCESS
        # Half of a limit so low is kept for the store's files (broker/network/listening.py).
        wait_until(lambda: server.open_files < 32, "the server has closed the idle connections")
        with server.broker() as peer:
            assert peer.call(SEND_MESSAGE, send_fields("T"), b"x").code == SUCCESS


@pytest.mark.parametrize("name", ["grpc", "admin", "ha"])
def test_connections_of_no_port_take_the_files_of_the_store(tmp_path: Path, name: str) -> None:
    few_files = ("sh", "-c", f'ulimit -n {FEW_FILES}; exec "$@"', "sh")
    ports_file, ha_port = tmp_path / "ports.json", fixed_port()
    words = ["--admin-port", "0", "--grpc-port", "0", "--ports-file", str(ports_file)]
    words += ["--set", f"haListenPort={ha_port}"]
    with ServedProcess(tmp_path, words, command=few_files) as server, contextlib.ExitStack() as stack:
        addresses = {**json.loads(ports_file.read_text()), "ha": f":{ha_port}"}
        old = stack.enter_context(server.broker())
        for _ in range(FEW_FILES):
            peer = stack.enter_context(Peer(int(addresses[name].rpartition(":")[2])))
            peer.say(b"P")  # of a preface, a method, a number: none is whole
        for number in range(4):  # topics need new files
            assert old.call(SEND_MESSAGE, send_fields(f"T{number}"), b"x").code == SUCCESS
        assert server.errors.count("file descriptors are in use") == 1
        assert server.open_files <= FEW_FILES // 2 + 16


def test_one_read_full_of_requests_is_answered_in_full(port: int) -> None:
    with Peer(port) as peer:
        peer.say(b"".join(request(3333, opaque=number) for number in range(3000)))
        for number in range(3000):
            assert peer.answer().opaque == number


# -- peers that do not read, or do not send


def fill(served: ServedProcess, topic: str) -> None:
    """4 MB of messages in queue 0."""
    with served.broker() as peer:
        for _ in range(16):
            assert peer.call(SEND_MESSAGE, send_fields(topic), bytes(MIB // 4)).code == SUCCESS


@pytest.mark.parametrize("code", [PULL_MESSAGE, GET_BROKER_CONFIG])
def test_peers_that_read_nothing_use_bounded_memory_and_delay_no_other_peer(
    served: ServedProcess, code: int
) -> None:
    fields = {name: str(value) for name, value in pull_fields("Slow").items()}
    fill(served, "Slow")
    before = served.private_bytes
    question = request(code, fields if code == PULL_MESSAGE else {}, opaque=1)
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            peer = stack.enter_context(served.broker(receive_bytes=4096, timeout=0.1))
            with contextlib.suppress(TimeoutError):
                peer.socket.sendall(question * (2 * MIB // len(question)))
        served.assert_serves()
        assert (
            served.private_bytes - before < 10 * 10 * MIB
        )  # 4 MiB and a little each, and what the allocator keeps


def test_peer_that_reads_late_gets_everything(served: ServedProcess) -> None:
    with served.broker(receive_bytes=4096, timeout=0.2) as peer:
        question = request(GET_BROKER_CONFIG, opaque=1)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 4 * MIB:
                sent += peer.socket.send(question * 100)
        peer.socket.settimeout(10)
        whole = sent // len(question)
        assert all(
            (reply := peer.hear()) is not None and reply.code == SUCCESS for _ in range(min(whole, 500))
        )


def test_peers_that_send_or_read_nothing_are_dropped_after_the_idle_limit(tmp_path: Path) -> None:
    words = ["--set", f"serverChannelMaxIdleTimeSeconds={IDLE_SECONDS}"]
    with ServedProcess(tmp_path, words) as server, contextlib.ExitStack() as stack:
        fill(server, "Deaf")
        files = server.open_files
        for port in (server.broker_port, server.namesrv_port):
            stack.enter_context(Peer(port))
            stack.enter_context(Peer(port)).say(QUESTION[:10])
        deaf = stack.enter_context(server.broker(receive_bytes=4096, timeout=0.1))
        fields = {name: str(value) for name, value in pull_fields("Deaf").items()}
        with contextlib.suppress(TimeoutError):
            deaf.socket.sendall(request(PULL_MESSAGE, fields) * 5000)
        talker = stack.enter_context(server.broker())
        wait_until(
            lambda: talker.call(3333).code == 3 and server.open_files <= files + 1,
            "the server has closed the others",
        )


@pytest.mark.slow
def test_stop_does_not_wait_for_peers_that_never_answer(tmp_path: Path) -> None:
    with ServedProcess(tmp_path) as server, contextlib.ExitStack() as stack:
        fill(server, "Deaf")
        stack.enter_context(server.broker()).say(QUESTION[:10])
        deaf = stack.enter_context(server.broker(receive_bytes=4096, timeout=0.1))
        fields = {name: str(value) for name, value in pull_fields("Deaf").items()}
        with contextlib.suppress(TimeoutError):
            deaf.socket.sendall(request(PULL_MESSAGE, fields) * 5000)
        waiting = stack.enter_context(server.broker())
        waits = {**pull_fields("Deaf", 1), "sysFlag": 6, "suspendTimeoutMillis": 10**15}
        waiting.say(request(PULL_MESSAGE, {name: str(value) for name, value in waits.items()}))
        watch = Stopwatch()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(10) == 0
        assert watch.seconds < 5
        assert waiting.answer().code != SUCCESS
