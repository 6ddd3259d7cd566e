"""Mirrors for tests: one that copies once, its run, one that goes on, and what has arrived."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from pocketmq.pipeline.jobs.moving.mirror import Mirror, build
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.protocol.requests.topic import UpdateAndCreateTopic
from pocketmq.testing import RocketMQCluster

from pipeline.brokers.cluster_sends import options_of
from pipeline.brokers.reading import read


def mirror_of(source: Any, target: Any, topic: str, **options: Any) -> Mirror:
    """A mirror from one server or cluster to another that ends once everything is copied."""
    return Mirror(
        namesrv_addr=source.namesrv_addr,
        target_namesrv_addr=target.namesrv_addr,
        topics=topic,
        is_once=True,
        **options,
    )


def run(mirror: Mirror) -> Any:
    """Its report."""
    mirror.check()
    return build(mirror, threading.Event())


@contextmanager
def running(mirror: Mirror) -> Iterator[list[Any]]:
    """A mirror that goes on until the `with` ends; its report is in the list then."""
    ended, reports = threading.Event(), []
    endless = msgspec.structs.replace(mirror, is_once=False)
    thread = threading.Thread(target=lambda: reports.append(build(endless, ended)))
    thread.start()
    try:
        yield reports
    finally:
        ended.set()
        thread.join(20)


def copies(target: RocketMQCluster) -> list[str]:
    """The bodies in topic T of a cluster, queue by queue."""
    with BrokerClient(target.namesrv_addr).closing() as client:
        return read(client, options_of(target, "T"))


def make(server: Any, topic: str, *, readable: int = 1, writable: int = 1, perm: int = 6) -> None:
    """A topic with other numbers of queues, or another name, than `topic` makes."""
    server.server.request(
        UpdateAndCreateTopic(
            topic=topic, default_topic="TBW102", read_queue_nums=readable, write_queue_nums=writable, perm=perm,
            topic_filter_type="SINGLE_TAG",
        )
    )  # fmt: skip
