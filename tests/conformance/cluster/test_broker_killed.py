"""An unmodified official producer on a `RocketMQCluster`, one of whose brokers is killed and started while it sends.

The Java clients fail over to the other broker; what was acknowledged to them must be there in the end. No namespace is
needed: the cluster takes free ports.
"""

import asyncio
import os
import re
import subprocess
from pathlib import Path

import pytest
from pocketmq.client import ConsumeFromWhere, PushConsumer
from pocketmq.testing import RocketMQCluster

from conformance.official.jars import prepare_home
from conformance.official.programs import CLIENT_HEAP, example
from waiting import until

TOPIC = "TopicTest"
ACKNOWLEDGED = re.compile(r"sendStatus=SEND_OK, msgId=(\w+),.*brokerName=(\w+)")
KILL_AFTER, START_AFTER = 100, 300
"""So many of the example's 1,000 messages."""


@pytest.mark.parametrize("version", ["4.9", "5.5"])
async def test_what_a_java_producer_was_acknowledged_outlives_a_kill(
    peers: None, tmp_path: Path, version: str
) -> None:
    prepare_home(tmp_path)
    command = example(version, "quickstart.Producer").command(tmp_path, CLIENT_HEAP, ())
    async with RocketMQCluster(brokers=2, emulate="4.9" if version == "4.9" else "5") as cluster:
        cluster.grow(TOPIC, queues=4)
        environment = {**os.environ, "NAMESRV_ADDR": cluster.namesrv_addr}
        acknowledged = await asyncio.to_thread(sent_while_killed, command, environment, cluster)
        assert {broker for _, broker in acknowledged} == {"b0", "b1"}
        assert len(acknowledged) >= START_AFTER
        seen: set[str] = set()
        async with PushConsumer(
            "readers",
            lambda message: seen.add(message.message_id),
            namesrv_addr=cluster.namesrv_addr,
            subscription={TOPIC: "*"},
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        ):
            wanted = {message_id for message_id, _ in acknowledged}
            await until(lambda: seen >= wanted, what="every acknowledged message is there")


def sent_while_killed(
    command: list[str], environment: dict[str, str], cluster: RocketMQCluster
) -> list[tuple[str, str]]:
    """(message id, broker) of what the producer printed as stored. It ends by itself."""
    acknowledged: list[tuple[str, str]] = []
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as producer:
        assert producer.stdout is not None
        for line in producer.stdout:
            found = ACKNOWLEDGED.search(line)
            if found is None:
                continue
            acknowledged.append((found[1], found[2]))
            if len(acknowledged) == KILL_AFTER:
                cluster.broker("b0").kill()
            elif len(acknowledged) == START_AFTER:
                cluster.broker("b0").start()
    assert producer.returncode == 0
    return acknowledged
