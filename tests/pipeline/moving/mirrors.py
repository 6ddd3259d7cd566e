"""Mirrors for tests: one that copies once, its run, one that goes on, and what has arrived."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from click.testing import Result
from pocketmq.pipeline.jobs.moving.mirror import Mirror, build
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.testing import RocketMQCluster

from pipeline import commands
from pipeline.brokers.reading import options, read

GROUP = "pocketmq-mirror-default"


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


def run_command(source: Any, target: Any, topic: str, *more: str) -> Result:
    """The same as a command."""
    words = ("-n", source.namesrv_addr, "--to-namesrv", target.namesrv_addr, "--topics", topic, "--once")
    return commands.run("mirror", *words, *more)


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


@contextmanager
def two_clusters(*, brokers: int = 1, queues: int = 1) -> Iterator[tuple[RocketMQCluster, RocketMQCluster]]:
    """Source and target with topic T."""
    with RocketMQCluster(brokers=brokers) as source, RocketMQCluster(brokers=brokers) as target:
        for cluster in (source, target):
            cluster.grow("T", queues=queues)
        yield source, target


def copies(target: RocketMQCluster) -> list[str]:
    """The bodies in topic T of a cluster, queue by queue."""
    with BrokerClient(target.namesrv_addr).closing() as client:
        return read(client, options(target, "T"))


def texts(server: Any, topic: str, queue_id: int | None = None) -> list[str]:
    """The messages of a topic of a server, or of one of its queues."""
    return [one.text for one in server.messages(topic) if queue_id in (None, one.queue_id)]


def end_of(cluster: RocketMQCluster, queue: Queue) -> int:
    """One past the last message of a queue; -1 while its broker is away."""
    broker = cluster.broker(queue.broker_name)
    if not broker.is_running:
        return -1
    return cluster.call(lambda: broker.broker.store.max_offset(queue.topic, queue.queue_id))
