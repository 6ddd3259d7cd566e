"""Consumer groups move to the other cluster and go on there: real consumers on both sides read each message once."""

import asyncio
from pathlib import Path

import pytest
from pocketmq.client import MessageExt
from pocketmq.pipeline.jobs.moving.mirror import Mirror
from pocketmq.testing import RocketMQ

from pipeline.moving.mirrors import mirror_of, run, running
from pipeline.topics import bodies, filled, send
from testing_acts import consuming
from waiting import until, wait_until

GROUP = "billing"


async def consume(server: RocketMQ, topic: str, count: int) -> list[str]:
    """A member of the group consumes `count` messages, then leaves: leaving commits its offsets."""
    seen: list[MessageExt] = []
    async with consuming(server, GROUP, seen.append, topic):
        await until(lambda: len(seen) >= count)
    return [one.body.decode() for one in seen]


def moving(source: RocketMQ, target: RocketMQ, topic: str, folder: Path) -> Mirror:
    return mirror_of(source, target, topic, groups=GROUP, map_file=str(folder / "map"))


def test_a_group_goes_on_at_the_target_where_it_was_at_the_source(
    rocketmq: RocketMQ, target: RocketMQ, tmp_path: Path
) -> None:
    topic = filled(rocketmq, "moves", 10, queues=2)
    mirror = moving(rocketmq, target, topic, tmp_path)
    run(mirror)
    before = asyncio.run(consume(rocketmq, topic, 10))
    send(rocketmq, topic, range(10, 20), queues=2)
    assert run(mirror).lead.endswith(f"2 offsets of {GROUP} are known there.")
    after = asyncio.run(consume(target, topic, 10))
    assert sorted(before + after) == sorted(bodies(20))


def test_a_group_that_has_consumers_in_the_target_is_left_alone_and_the_copying_goes_on(
    rocketmq: RocketMQ, target: RocketMQ, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic = filled(rocketmq, "moved", 1)
    asyncio.run(consume(rocketmq, topic, 1))

    async def live() -> list[str]:
        seen: list[MessageExt] = []
        async with consuming(target, GROUP, seen.append, topic):
            await until(lambda: "has consumers in the target" in caplog.text)
            rocketmq.send(topic, "m1", queue_id=0)
            await until(lambda: len(seen) == 1)
        return [one.body.decode() for one in seen]

    with running(moving(rocketmq, target, topic, tmp_path)) as reports:
        wait_until(lambda: target.offsets(topic, GROUP) == {0: 1})
        assert asyncio.run(live()) == ["m1"]
    assert caplog.text.count("has consumers in the target") == 1
    assert reports[0].lead.startswith("2 messages copied")
