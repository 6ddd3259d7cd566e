"""The queue of a sent message: one message group always gets the same queue, anything else a random one.

The official proxy hashes a group with Guava's consistent hash (jump hash) of Java's string hash: the same group has the
same queue on either server. Mirrors `SendMessageActivity.SendMessageQueueSelector`.
"""

from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Final

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.java_strings import java_hash

_MULTIPLIER: Final = 2_862_933_555_777_941_757
_MASK_64: Final = (1 << 64) - 1


@lru_cache(maxsize=4096)
def queue_of_group(group: str, queues: int) -> int:
    """The queue of a message group among so many, numbered from 0."""
    state = java_hash(group) & _MASK_64
    candidate = 0
    while True:
        state = (state * _MULTIPLIER + 1) & _MASK_64
        draw = ((state >> 33) + 1) / (1 << 31)
        following = int((candidate + 1) / draw)
        if not 0 <= following < queues:
            return candidate
        candidate = following


def chosen_queue(properties: Mapping[str, str], queues: int, random: Random) -> int:
    """The queue among the writable ones of the topic. The queue that the client names does not count."""
    group = properties.get(names.SHARDING_KEY) or properties.get(names.LITE_TOPIC)
    return queue_of_group(group, queues) if group else int(random.random() * queues)
