"""Dead letters that are sent back: what a dry run leaves alone, brokers that refuse, topics that are gone, clusters."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from pocketmq.client import AdminClient
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.testing import EmbeddedServer, RocketMQ, RocketMQCluster

from pipeline.brokers.cluster_sends import sender_to
from pipeline.brokers.reading import options, read
from pipeline.moving.dlq_runs import DEAD, run, tables
from pipeline.topics import bodies, give_back


@pytest.fixture
def rocketmq() -> Iterator[RocketMQ]:
    """Five messages of Orders and three of Bills, all given up by their group."""
    with EmbeddedServer() as server:
        rocketmq = RocketMQ(server)
        rocketmq.group("billing")
        for topic, count in (("Orders", 5), ("Bills", 3)):
            rocketmq.topic(topic, queues=2)
            for number in range(count):
                rocketmq.send(topic, f"{topic} {number}", tags="A")
            for message in rocketmq.messages(topic):
                give_back(rocketmq, message, "billing")
        yield rocketmq


def test_a_dry_run_sends_only_questions(rocketmq: RocketMQ) -> None:
    rocketmq.requests.clear()
    ran = run(rocketmq, "--send-back", "origin", "--dry-run")
    assert ran.exit_code == 1
    names = {one.name for one in rocketmq.requests.find()}
    assert names <= {
        "GET_ROUTEINFO_BY_TOPIC", "GET_ALL_TOPIC_LIST_FROM_NAMESERVER", "GET_MIN_OFFSET", "GET_MAX_OFFSET",
        "QUERY_CONSUMER_OFFSET", "PULL_MESSAGE",
    }  # fmt: skip
    assert len(rocketmq.messages("Orders")) == 5


def test_what_was_sent_before_a_broker_refused_is_not_sent_again(rocketmq: RocketMQ, tmp_path: Path) -> None:
    rocketmq.faults.refuse(code="SEND_BATCH_MESSAGE", topic="Bills", response="NO_PERMISSION", times=None)
    ran = run(rocketmq, "--send-back", "origin")
    line = "pocketmq: send to Bills: SEND_BATCH_MESSAGE: code 16 NO_PERMISSION, no remark; copies sent before that: 5\n"
    assert (ran.exit_code, ran.output) == (2, line)
    rocketmq.faults.clear()
    assert tables(rocketmq, tmp_path, "--send-back", "origin")["sent"] == [
        {"deadIn": DEAD, "target": "Bills", "what": "sent", "messages": 3}
    ]
    assert sorted(one.text for one in rocketmq.messages("Orders")) == sorted(
        2 * [f"Orders {n}" for n in range(5)]
    )


def test_dead_letters_of_a_deleted_topic_stay_and_the_topic_is_not_made_again(
    rocketmq: RocketMQ, tmp_path: Path
) -> None:

    async def delete() -> None:
        async with AdminClient(namesrv_addr=rocketmq.namesrv_addr) as admin:
            await admin.delete_topic("Bills", "DefaultCluster")

    asyncio.run(delete())
    for words in (["--dry-run"], []):
        what = "would be sent" if words else "sent"
        assert tables(rocketmq, tmp_path, "--send-back", "origin", *words)["sent"] == [
            {"deadIn": DEAD, "target": "Orders", "what": what, "messages": 5},
            {
                "deadIn": DEAD,
                "target": "Bills",
                "what": "not sent: the topic of origin does not exist",
                "messages": 3,
            },
        ]
    assert len(rocketmq.messages("Orders")) == 10
    with BrokerClient(rocketmq.namesrv_addr).closing() as client:
        assert "Bills" not in client.topics(1_000)
    rocketmq.topic("Bills", queues=1)
    words = ["--send-back", "origin", "--origin", "Bills", "--again"]
    assert tables(rocketmq, tmp_path, *words)["sent"][0]["messages"] == 3


def test_dead_letters_of_several_brokers_are_sent_back_once(tmp_path: Path) -> None:
    with RocketMQCluster(brokers=2) as cluster:
        for topic in ("Orders", DEAD):
            cluster.grow(topic, queues=1)
        with BrokerClient(cluster.namesrv_addr).closing() as client:
            sender = sender_to(client, in_flight=1)
            for number in range(6):
                text = encode_properties_text({"RETRY_TOPIC": "Orders", "UNIQ_KEY": f"id{number}"})
                queue = Queue(DEAD, f"b{number % 2}", 0)
                sender.send_one(DEAD, b"m%d" % number, text, 0, queue=queue)
            sender.finish()
            found = tables(cluster, tmp_path, "--send-back", "origin")
            assert [(row["originTopic"], row["messages"]) for row in found["groups"]] == [("Orders", 6)]
            assert found["sent"][0]["messages"] == 6
            assert tables(cluster, tmp_path, "--send-back", "origin")["sent"] == []
            assert sorted(read(client, options(cluster, "Orders"))) == bodies(6)
