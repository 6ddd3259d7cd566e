"""Mirrors for tests: one that copies once, and its run."""

import threading
from typing import Any

from pocketmq.pipeline.moving.mirror import Mirror, build


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
