"""What a server has acknowledged survives a kill, however soon after it the kill is.

For messages see `tests/store/durability/test_recovery.py`. Here: topics and groups, whose tables are written beside the
log. Consumer offsets are not included: they are saved every few seconds, as in the official broker.
"""

import json
from pathlib import Path

import pytest

from raw_peer import PULL_MESSAGE, SEND_MESSAGE, SUCCESS, Peer, ServedProcess, pull_fields, send_fields

NEW_TOPIC = {
    "topic": "made",
    "defaultTopic": "TBW102",
    "readQueueNums": 3,
    "writeQueueNums": 3,
    "perm": 6,
    "topicFilterType": "SINGLE_TAG",
}


def killed_after(tmp_path: Path, code: int, fields: dict[str, object], body: bytes, *words: str) -> None:
    with ServedProcess(tmp_path, words, ends_well=False) as server, server.broker() as peer:
        reply = peer.call(code, fields, body)
        server.process.kill()
        assert reply.code == SUCCESS, reply


@pytest.mark.parametrize("words", [(), ("--set", "flushDiskType=SYNC_FLUSH")], ids=["async", "sync"])
def test_topic_made_by_a_send_survives_with_its_message(tmp_path: Path, words: tuple[str, ...]) -> None:
    killed_after(tmp_path, SEND_MESSAGE, send_fields("made"), b"body", *words)
    with ServedProcess(tmp_path) as server, server.broker() as peer:
        assert peer.call(SEND_MESSAGE, send_fields("other"), b"x").code == SUCCESS
        pulled = peer.call(PULL_MESSAGE, pull_fields("made"))
        assert (pulled.code, pulled.fields["maxOffset"]) == (SUCCESS, "1")
        assert b"body" in pulled.body


def test_topic_made_by_an_administrator_survives(tmp_path: Path) -> None:
    killed_after(tmp_path, 17, NEW_TOPIC, b"")
    with ServedProcess(tmp_path) as server, server.broker() as peer:
        assert topic(peer, "made")["readQueueNums"] == 3


def test_topics_made_by_one_request_survive(tmp_path: Path) -> None:
    listed = [
        {"topicName": f"made_{number}", "readQueueNums": 1, "writeQueueNums": 1} for number in range(20)
    ]
    killed_after(tmp_path, 18, {}, json.dumps({"topicConfigList": listed}).encode())
    with ServedProcess(tmp_path) as server, server.broker() as peer:
        for number in range(20):
            assert topic(peer, f"made_{number}")["writeQueueNums"] == 1


def test_group_made_by_an_administrator_survives(tmp_path: Path) -> None:
    killed_after(tmp_path, 200, {}, json.dumps({"groupName": "made", "retryMaxTimes": 7}).encode())
    with ServedProcess(tmp_path, ["--set", "autoCreateSubscriptionGroup=false"]) as server:
        with server.broker() as peer:
            reply = peer.call(352, {"group": "made"})
        assert (reply.code, json.loads(reply.body)["retryMaxTimes"]) == (SUCCESS, 7)


def topic(peer: Peer, name: str) -> dict[str, object]:
    reply = peer.call(351, {"topic": name})
    assert reply.code == SUCCESS, reply
    config: dict[str, object] = json.loads(reply.body)
    return config
