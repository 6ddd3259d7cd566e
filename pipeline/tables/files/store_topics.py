"""The topics of a store, in a folder or behind a URL. Imports little, no Spark."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.text.fastjson import loads

from ..planning.spelling import did_you_mean
from .locations import is_url, shown_url
from .remote_files import location_of

SHOWN: Final = 5
"""Topics that are named in place of one that does not exist, if none is spelled like it."""


def topics_of_store(store: str) -> list[str]:
    """The topics with consume queues in a store, sorted."""
    if is_url(store):
        return location_of(store).folders("consumequeue")
    root = Path(store) / "consumequeue"
    return sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def configured_topics(store: str) -> frozenset[str] | None:
    """The topics that the broker of a store knows; None if its table cannot be read."""
    name = "config/topics.json"
    try:
        text = location_of(store).read(name) if is_url(store) else (Path(store) / name).read_bytes()
        return frozenset(loads(text)["topicConfigTable"])
    except (OSError, ProtocolError, ValueError, KeyError, TypeError):
        return None


def missing_topics(stores: Sequence[str], topics: Iterable[str]) -> list[str]:
    """A sentence for each topic that is in no store: misspelt, or deleted. None for stores without any queue."""
    existing = [topic for store in stores for topic in topics_of_store(store)]
    if existing:
        existing += [topic for store in stores for topic in configured_topics(store) or ()]
    place, shown = ", ".join(map(shown_url, stores)), ", ".join(sorted(set(existing))[:SHOWN])
    return [
        f"{place} has no topic {topic}{did_you_mean(topic, existing) or f'; it has {shown}'}"
        for topic in topics
        if existing and topic not in existing
    ]
