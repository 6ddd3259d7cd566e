"""Name servers, routes, access and offsets, asked through a `BrokerClient`. No Spark."""

from pathlib import Path

import pytest
from pocketmq.pipeline.errors import PipelineError
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.testing import EmbeddedServer, RocketMQ

from pipeline.brokers.reading import options, read
from reader_account import KEYS, only_reader


def test_a_broker_with_access_control_is_read_with_keys_over_tls_and_not_without(tmp_path: Path) -> None:
    with EmbeddedServer(store=tmp_path / "store") as server:
        rocketmq = RocketMQ(server)
        topic = rocketmq.topic("T", queues=1)
        rocketmq.send(topic, "a body")
    with EmbeddedServer(only_reader(tmp_path), store=tmp_path / "store") as server:
        rocketmq = RocketMQ(server)
        for access, refusal in (
            (KEYS, None),
            ({**KEYS, "rocketmq.secretKey": "another"}, "signature"),
            ({}, "accessKey"),
        ):
            chosen = options(rocketmq, topic, **access)
            with BrokerClient(server.namesrv_addr, chosen.access).closing() as client:
                if refusal is None:
                    assert read(client, chosen) == ["a body"]
                else:
                    with pytest.raises(PipelineError, match=f"(?i){refusal}"):
                        read(client, chosen)


def test_offsets_of_a_group_that_does_not_exist_are_stored(rocketmq: RocketMQ, client: BrokerClient) -> None:
    topic = rocketmq.topic("progress", queues=1)
    queue = Queue(topic, "broker-a", 0)
    rocketmq.send(topic, "one")
    assert client.committed("nobody-made-me", [queue], 30_000) == {queue: None}
    client.commit("nobody-made-me", {queue: 1}, 30_000)
    assert client.committed("nobody-made-me", [queue], 30_000) == {queue: 1}
