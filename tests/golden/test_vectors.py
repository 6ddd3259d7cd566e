"""The recordings themselves: whole, complete, small, and free of anything but the protocol.

Tests nothing of PocketMQ: tests/protocol tests the codecs with these frames.
"""

import ipaddress
import re
import struct

import pytest

from golden import FOLDER, Vector, all_vectors, vectors

BOTH_LINES = {
    "broker": {
        *(10, 310, 320, 11, 14, 15, 29, 30, 31, 32, 33, 12, 34, 35, 38, 41, 42, 46, 17, 21, 25, 26, 28),
        *(200, 201, 207, 202, 203, 204, 208, 215, 300, 303, 305, 307, 309, 222, 223, 314, 36, 37, 324, 325),
        *(43, 45),
    },
    "namesrv": {*range(100, 107), 205, 206, 216, 219, 224, 304, 311, 312, 313, 318, 319, 322, 327},
}
ONLY_FIVE = {
    "broker": {18, 60, 61, 225, 351, 352, 353, 361, 370, 400, 401, 402, 906, 907, 200050, 200051, 200053},
    "namesrv": {217, 901, 904},
}
ONEWAY = {37, 904}
PUSHED = {39, 40, 220, 221, 307, 309, 326}


def test_every_vector_is_one_whole_frame() -> None:
    wrong = []
    for vector in all_vectors():
        length, word = struct.unpack_from(">iI", vector.frame)
        header_size, kind = word & 0xFFFFFF, {0: "JSON", 1: "ROCKETMQ"}[word >> 24]
        if length + 4 != len(vector.frame) or header_size > length - 4 or kind != vector.header:
            wrong.append(str(vector))
    assert wrong == []


@pytest.mark.parametrize("line", ["4.9.7", "5.5.0"])
@pytest.mark.parametrize("peer", ["broker", "namesrv"])
def test_every_request_of_a_line_is_recorded_with_its_reply(line: str, peer: str) -> None:
    wanted = BOTH_LINES[peer] | (ONLY_FIVE[peer] if line == "5.5.0" else set())
    assert wanted - codes(server=line, peer=peer, direction="request") == set()
    assert wanted - ONEWAY - codes(server=line, peer=peer, direction="reply") == set()


@pytest.mark.parametrize("line", ["4.9.7", "5.5.0"])
def test_every_push_of_a_broker_is_recorded(line: str) -> None:
    assert PUSHED - codes(server=line, direction="push") == set()


@pytest.mark.parametrize("header", ["JSON", "ROCKETMQ"])
@pytest.mark.parametrize("direction", ["request", "reply", "push", "answer"])
@pytest.mark.parametrize("line", ["4.9.7", "5.5.0"])
def test_both_header_kinds_are_recorded_in_all_directions(line: str, direction: str, header: str) -> None:
    assert codes(server=line, direction=direction, header=header)


def test_recordings_stay_small() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 1_000_000


def test_no_address_but_loopback_was_recorded() -> None:
    address = re.compile(rb"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
    strange = {
        (str(vector), text)
        for vector in all_vectors()
        for text in {match.decode() for match in address.findall(vector.frame)}
        if not is_local(text)
    }
    assert strange == set()


def is_local(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return True  # a version or a number with dots
    return address.is_loopback or address.is_unspecified


def codes(**wanted: object) -> set[int]:
    found: set[int] = {vector.request_code for vector in vectors(**wanted)}
    return found


def test_a_vectors_name_describes_its_frame() -> None:
    vector = Vector("4.9.7", "4.9.8", "namesrv", "reply", 17, 105, "JSON", b"")
    assert str(vector) == "reply-105-17-namesrv-4.9.7-4.9.8-JSON"
