"""Requests no official client would send: unknown codes, missing and wrong fields, malformed bodies, one-way requests
that fail, answers without a request.

Each is refused with a remark that says why, or ignored. Malformed frames are in `test_bad_input.py`; wrong values for
every served code in `generated_rows.py`.
"""

import json
import struct
import zlib
from collections.abc import Iterator

import pytest

from raw_peer import (
    GET_CLUSTER_INFO,
    GET_MAX_OFFSET,
    NOT_SUPPORTED,
    ONEWAY,
    PULL_MESSAGE,
    SEND_MESSAGE,
    SUCCESS,
    SYSTEM_ERROR,
    Peer,
    ServedProcess,
    pull_fields,
    registration_fields,
    request,
    send_fields,
)

MARKER_OPAQUE = 1_000_001


@pytest.fixture(scope="module")
def name_server(served: ServedProcess) -> Iterator[Peer]:
    with served.name_server() as peer:
        yield peer


# -- well-formed requests that are refused


@pytest.mark.parametrize("code", [0, 9, 9999, 32768, -1, 2**31 - 1])
def test_unknown_code_gets_code_3_and_a_remark_that_names_it(
    broker: Peer, name_server: Peer, code: int
) -> None:
    for peer in (broker, name_server):
        reply = peer.call(code)
        assert (reply.code, reply.remark) == (NOT_SUPPORTED, f" request type {code} not supported")


def test_code_of_the_other_server_is_unknown_here(broker: Peer, name_server: Peer) -> None:
    assert broker.call(GET_CLUSTER_INFO).code == NOT_SUPPORTED
    assert name_server.call(SEND_MESSAGE, send_fields("T"), b"x").code == NOT_SUPPORTED


def test_long_nonsense_is_not_sent_back_in_full(broker: Peer) -> None:
    reply = broker.call(GET_MAX_OFFSET, {"topic": "T", "queueId": "9" * 60_000})
    assert reply.code == SYSTEM_ERROR
    assert "queueId is '999" in reply.remark
    assert len(reply.remark) < 1000


@pytest.mark.parametrize("code", [34, 41, 42, 46, 200, 18, 225])
@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff\xfe{}", b"[" * 100_000, b"{'a':" * 50_000, b"7"])
def test_malformed_json_body_is_refused(broker: Peer, code: int, body: bytes) -> None:
    reply = broker.call(code, {}, body)
    assert reply.code != SUCCESS
    assert reply.remark
    assert len(reply.remark) < 1000


@pytest.mark.parametrize("body", [b"{", b"[" * 100_000, b"\x78\x9c\x00", b"\xff" * 100])
@pytest.mark.parametrize("compressed", [False, True])
def test_malformed_registration_registers_no_broker(name_server: Peer, compressed: bool, body: bytes) -> None:
    fields = registration_fields("broken", compressed=compressed)
    assert name_server.call(103, fields, body).code == SYSTEM_ERROR
    assert b"broken" not in name_server.call(GET_CLUSTER_INFO).body


def test_registration_with_a_wrong_checksum_registers_no_broker(name_server: Peer) -> None:
    reply = name_server.call(103, registration_fields("broken", bodyCrc32=1), b"{}")
    assert (reply.code, reply.remark) == (SYSTEM_ERROR, "crc32 not match")
    assert b"broken" not in name_server.call(GET_CLUSTER_INFO).body


def test_compressed_registration_may_not_fill_the_memory(served: ServedProcess, name_server: Peer) -> None:
    packer = zlib.compressobj(1)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(400)) + packer.flush()
    before = served.peak_bytes
    reply = name_server.call(103, registration_fields("bomb", compressed=True), bomb)
    assert reply.code == SYSTEM_ERROR
    assert served.peak_bytes - before < 200 << 20


@pytest.mark.parametrize(
    ("code", "fields", "body"),
    [
        (9999, {}, b""),
        (GET_MAX_OFFSET, {}, b""),
        (SEND_MESSAGE, send_fields("TBW102"), b"x"),
        (34, {}, b"{"),
        (17, {"topic": "a b"}, b""),
        (PULL_MESSAGE, pull_fields("nowhere"), b""),
    ],
)
def test_one_way_request_that_fails_is_not_answered(
    broker: Peer, code: int, fields: dict[str, object], body: bytes
) -> None:
    texts = {name: str(value) for name, value in fields.items()}
    broker.say(request(code, texts, body, opaque=77, flag=ONEWAY))
    broker.say(request(GET_MAX_OFFSET, {"topic": "T", "queueId": "0"}, opaque=MARKER_OPAQUE))
    reply = broker.answer()
    assert (reply.opaque, reply.code) == (MARKER_OPAQUE, SUCCESS)


def test_answers_without_a_request_are_ignored(broker: Peer, name_server: Peer) -> None:
    for peer in (broker, name_server):
        for opaque in (0, 1, -1, 2**31 - 1):
            peer.say(request(0, opaque=opaque, flag=1))
            peer.say(request(1, opaque=opaque, flag=3, remark="x" * 1000))
        peer.say(request(3333, opaque=MARKER_OPAQUE))
        assert peer.answer().opaque == MARKER_OPAQUE


@pytest.mark.parametrize("count", [1, 2, 100])
def test_batch_whose_lengths_exceed_its_body_stores_nothing(broker: Peer, count: int) -> None:
    element = struct.pack(">iiiii", 30, 0, 0, 0, 4) + b"body" + struct.pack(">h", 0)
    fields = dict(zip("abcdefghim", ["raw", "BatchT", "TBW102", 4, 0, 0, 1, 0, "", True], strict=True))
    too_long, negative = struct.pack(">5i", 30, 0, 0, 0, 2**31 - 1), struct.pack(">5i", *[-1] * 5)
    for lie in (too_long, element[:-1], element[:5], negative):
        assert broker.call(320, fields, element * count + lie).code != SUCCESS
    assert broker.call(GET_MAX_OFFSET, {"topic": "BatchT", "queueId": 0}).fields["offset"] == "0"


@pytest.mark.parametrize("group", ["../../up", "a/b", "/abs", "..", "g" * 300, "\0"])
def test_no_name_is_used_as_a_path_outside_the_store(served: ServedProcess, broker: Peer, group: str) -> None:
    heartbeat = {"clientID": "c", "consumerDataSet": [{"groupName": group, "subscriptionDataSet": []}]}
    broker.call(34, {}, json.dumps(heartbeat).encode())
    for topic in (group, f"%RETRY%{group}", f"%DLQ%{group}"):
        assert broker.call(SEND_MESSAGE, send_fields(topic), b"x").code != SUCCESS
    broker.call(36, {"offset": 0, "group": group, "delayLevel": -1})
    broker.call(215, {"topic": f"x/../{group}"})
    assert {path.name for path in served.folder.iterdir()} == {"store", "stderr"}
    known = {"abort", "checkpoint", "commitlog", "config", "consumequeue", "index", "lock", "namesrv"}
    assert {path.name for path in served.store.iterdir()} <= known
    assert all(queue.name.isdecimal() for queue in (served.store / "consumequeue").glob("*/*"))
