"""Consumer offsets after kill -9: at most flushConsumerOffsetInterval old, and never ahead of what was committed.

One process after another serves the same store. A client commits rising offsets until the server has saved some. The
server is killed at some moment between two saves, and the next one reports the offsets it has.
"""

import json
import random
import time
from pathlib import Path

import pytest

from raw_peer import SEND_MESSAGE, SUCCESS, Peer, ServedProcess, send_fields

LIVES = 2
QUEUES = 2
INTERVAL_SECONDS = 0.4
GRACE_SECONDS = 3.0
"""What a busy machine may add; still less than the default interval, which a server deaf to the setting would keep."""
MOST_SECONDS = INTERVAL_SECONDS + GRACE_SECONDS
WORDS = ("--set", f"flushConsumerOffsetInterval={int(INTERVAL_SECONDS * 1000)}")
QUERY_CONSUMER_OFFSET, UPDATE_CONSUMER_OFFSET, UPDATE_GROUP = 14, 15, 200


def fields(queue_id: int, **more: object) -> dict[str, object]:
    return {"consumerGroup": "readers", "topic": "orders", "queueId": queue_id, **more}


def saved_offset(folder: Path) -> int:
    """Queue 0's offset in the file on disk at this moment; -1 if it has none."""
    try:
        text = (folder / "store" / "config" / "consumerOffset.json").read_bytes()
    except FileNotFoundError:
        return -1
    table: dict[str, dict[str, int]] = json.loads(text)["offsetTable"]
    return table.get("orders@readers", {}).get("0", -1)


def commit_until_killed(
    server: ServedProcess, first: int, chance: random.Random
) -> tuple[list[float], float]:
    """Commit `first`, `first + 1`, ... to each queue; returns when each was answered, and when the kill was."""
    answered: list[float] = []
    saved, savings, kill_at = -1, 0, float("inf")
    with server.broker() as peer:
        while time.monotonic() < kill_at:
            for queue_id in range(QUEUES):
                offset = first + len(answered)
                reply = peer.call(UPDATE_CONSUMER_OFFSET, fields(queue_id, commitOffset=offset))
                assert reply.code == SUCCESS, reply
            answered.append(time.monotonic())
            before, saved = saved, max(saved_offset(server.folder), first - 1)
            savings += saved > before
            assert age_of_oldest_unsaved(answered, saved + 1 - first, time.monotonic()) <= MOST_SECONDS
            if savings == 3 and kill_at == float("inf"):
                kill_at = time.monotonic() + chance.uniform(0, 2 * INTERVAL_SECONDS)
        server.process.kill()
        killed = time.monotonic()
    return answered, killed


def age_of_oldest_unsaved(answered: list[float], saved: int, now: float) -> float:
    """Seconds since the answer to the first unsaved commit, the one after the first `saved` ones."""
    return now - answered[saved] if saved < len(answered) else 0.0


def known_offset(peer: Peer, queue_id: int) -> int:
    reply = peer.call(QUERY_CONSUMER_OFFSET, fields(queue_id))
    assert reply.code == SUCCESS, reply
    return int(reply.fields["offset"])


@pytest.mark.slow
def test_offsets_are_a_little_old_and_never_ahead(tmp_path: Path) -> None:
    chance = random.Random(7)
    first = 0
    with ServedProcess(tmp_path, WORDS) as server, server.broker() as peer:
        assert peer.call(SEND_MESSAGE, send_fields("orders"), b"body").code == SUCCESS
        assert peer.call(UPDATE_GROUP, {}, b'{"groupName": "readers"}').code == SUCCESS
    for _ in range(LIVES):
        with ServedProcess(tmp_path, WORDS, ends_well=False) as server:
            answered, killed = commit_until_killed(server, first, chance)
        with ServedProcess(tmp_path, WORDS) as server, server.broker() as peer:
            known = [known_offset(peer, queue_id) for queue_id in range(QUEUES)]
        last = first + len(answered) - 1
        for offset in known:
            assert first <= offset <= last, "ahead of what was committed, or older than an earlier life"
            assert age_of_oldest_unsaved(answered, offset + 1 - first, killed) <= MOST_SECONDS
        first = last + 1
