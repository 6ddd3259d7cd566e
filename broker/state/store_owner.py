"""Refuses the store of another broker, before anything in it is changed.

Each broker has a topic with its own name: one queue, and the permission to inherit. A store that has such a topic, but
not one with our name, belongs to another broker. Under our name, its topics would get a second set of queues in routes.
"""

from pathlib import Path
from typing import Any

from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.flags import PERM_INHERIT
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC, SYSTEM_PREFIX
from pocketmq.protocol.text import fastjson
from pocketmq.store import layout
from pocketmq.store.files.json_file import MAX_FILE_BYTES

from ..errors import StartError


def refuse_other_brokers_store(root: Path, broker_name: str) -> None:
    """Raises `StartError` that names the owner. An unreadable table passes: loading it later repairs or refuses it."""
    try:
        table = fastjson.loads((root / layout.CONFIG / layout.TOPICS).read_bytes(), max_bytes=MAX_FILE_BYTES)
    except (OSError, BodyError):
        return
    topics = table.get("topicConfigTable") if isinstance(table, dict) else None
    if not isinstance(topics, dict) or broker_name in topics:
        return
    owners = sorted(name for name, config in topics.items() if _is_broker_topic(name, config))
    if owners:
        raise StartError(
            f"store {root} belongs to broker {' or '.join(owners)}, not {broker_name}: "
            f"set brokerName={owners[0]}, or use another store"
        )


def _is_broker_topic(name: object, config: Any) -> bool:
    if not isinstance(name, str) or not isinstance(config, dict):
        return False
    if name == AUTO_CREATE_TOPIC or name.startswith(SYSTEM_PREFIX):
        return False
    perm = config.get("perm")
    queues = config.get("readQueueNums"), config.get("writeQueueNums")
    return isinstance(perm, int) and bool(perm & PERM_INHERIT) and queues == (1, 1)
