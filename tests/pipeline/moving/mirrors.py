"""Mirrors for tests: one that copies once, and its run."""

import threading
from typing import Any

from pocketmq.pipeline.moving.mirror import Mirror, build
from pocketmq.protocol.requests.topic import UpdateAndCreateTopic


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


def make(server: Any, topic: str, *, readable: int = 1, writable: int = 1, perm: int = 6) -> None:
    """A topic with other numbers of queues, or another name, than `topic` makes."""
    server.server.request(
        UpdateAndCreateTopic(
            topic=topic, default_topic="TBW102", read_queue_nums=readable, write_queue_nums=writable, perm=perm,
            topic_filter_type="SINGLE_TAG",
        )
    )  # fmt: skip
