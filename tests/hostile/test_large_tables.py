"""What a request costs that visits everything, at a server with 10^5 topics, 20,000 groups, 50,000 offsets."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from hostile.judge import MIB, Attack, Judge, Limits
from raw_peer import ONEWAY, SUCCESS, Peer, registration_fields, request

pytestmark = pytest.mark.slow

LIMITS = Limits(memory_bytes=128 * MIB)
"""A report allocates what it reports."""
REGISTERED = 50_000
"""Topics of one registration, the most that are allowed."""
TOPICS, GROUPS, OFFSETS = 20_000, 20_000, 50_000
AT_ONCE = 1000


def settings_of(topic: str) -> dict[str, Any]:
    return {"topicName": topic, "readQueueNums": 4, "writeQueueNums": 4, "perm": 6}


def register(peer: Peer, broker: str) -> None:
    names = [f"{broker}-topic-{number}" for number in range(REGISTERED)]
    wrapper = {"topicConfigTable": {name: settings_of(name) for name in names}}
    body = json.dumps({"filterServerList": [], "topicConfigSerializeWrapper": wrapper}).encode()
    fields = registration_fields(broker, brokerAddr=f"127.0.0.1:{broker[1:]}")
    assert peer.call(103, fields, body).code == SUCCESS


def create(peer: Peer, code: int, member: str, configs: Sequence[dict[str, Any]]) -> None:
    for first in range(0, len(configs), AT_ONCE):
        body = json.dumps({member: configs[first : first + AT_ONCE]}).encode()
        assert peer.call(code, {}, body).code == SUCCESS


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with Judge(tmp_path_factory.mktemp("judge")) as judge:
        with judge.server.name_server(timeout=60) as peer:
            for broker in ("b0", "b1"):
                register(peer, broker)
        with judge.server.broker(timeout=60) as peer:
            create(peer, 18, "topicConfigList", [settings_of(f"T{number}") for number in range(TOPICS)])
            create(peer, 225, "groupConfigList", [{"groupName": f"g{number}"} for number in range(GROUPS)])
            for number in range(OFFSETS):
                fields = {"consumerGroup": f"g{number % 100}", "topic": f"T{number // 100}", "queueId": "0"}
                peer.say(request(15, {**fields, "commitOffset": "0"}, flag=ONEWAY))
            assert peer.call(15, {**fields, "commitOffset": "0"}).code == SUCCESS
        yield judge


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("port", "code", "fields"),
    [
        ("namesrv", 205, {"brokerName": "b0"}),
        ("namesrv", 327, {"brokerName": "b0"}),
        ("namesrv", 206, {}),
        ("namesrv", 224, {"cluster": "DefaultCluster"}),
        ("broker", 21, {}),
        ("broker", 21, {"topicSeq": "1000", "maxTopicNum": "2000"}),
        ("broker", 28, {}),
        ("broker", 43, {}),
        ("broker", 201, {}),
        ("broker", 201, {"groupSeq": "1000", "maxGroupNum": "2000"}),
        ("broker", 208, {"consumerGroup": "g7"}),
        ("broker", 343, {"group": "g7"}),
        ("broker", 300, {"topic": "T1"}),
    ],
)
def test_a_request_that_visits_everything_leaves_turns_to_others(
    judge: Judge, port: str, code: int, fields: dict[str, str]
) -> None:
    attack = Attack(port, request(code, fields, opaque=1))
    judge.collect()
    assert judge.over(LIMITS, attack) == []
