"""A replay knows before it sends whether the target has a queue for each message."""

from collections.abc import Iterator
from typing import Any

import pytest
from pocketmq.pipeline.errors import OptionError, SourceUnreachable
from pocketmq.pipeline.jobs.moving import replay as replay_job
from pocketmq.pipeline.jobs.moving.replay import SPREAD, Replay, check_target
from pocketmq.testing import EmbeddedServer, RocketMQ


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[RocketMQ]:
    with EmbeddedServer(autoCreateTopicEnable="false") as server:
        yield RocketMQ(server)


def replay_of(rocketmq: RocketMQ, source: str, target: str, **options: Any) -> Replay:
    return Replay(namesrv_addr=rocketmq.namesrv_addr, topics=source, target=target, **options)


def test_a_target_with_fewer_queues_is_refused_if_the_others_have_messages(rocketmq: RocketMQ) -> None:
    source, target = rocketmq.topic("from", queues=4), rocketmq.topic("to", queues=2)
    rocketmq.send(source, "m0", queue_id=1)
    check_target(replay_of(rocketmq, source, target))
    rocketmq.send(source, "m1", queue_id=3)
    with pytest.raises(OptionError, match=r"has no writable queue 3, .* in 4 queues: .* --queues spread"):
        check_target(replay_of(rocketmq, source, target))
    check_target(replay_of(rocketmq, source, target, queues=SPREAD))
    check_target(replay_of(rocketmq, source, target, is_dry=True))
    assert rocketmq.messages(target) == []


def test_a_target_that_does_not_exist_and_is_not_created_is_refused(
    rocketmq: RocketMQ, elsewhere: RocketMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_job, "ROUTE_MS", 100)
    source = rocketmq.topic("from", queues=1)
    rocketmq.send(source, "m")
    with pytest.raises(SourceUnreachable, match="no broker has topic nowhere, and none creates topics"):
        check_target(replay_of(rocketmq, source, "nowhere", target_namesrv_addr=elsewhere.namesrv_addr))
