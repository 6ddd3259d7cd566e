"""Hashes of index keys, fast: the absolute value of Java's string hash of `topic#key`.

Walking 40 characters in Python costs more than the rest of an index entry. Java's hash of a text can be put together
from the hashes of its pieces, h(a + b) = h(a) * 31^len(b) + h(b), and a producer's unique keys share all but their
last characters (milliseconds and counter, hexadecimal): so the hashes of pairs of digits are known, and those of two
beginnings are cached, one that lasts a minute and one that lasts a millisecond. Keys of users often count up, too: if
two in a row share all but their last four characters, that prefix is cached; other keys cost one more look-up.
"""

from typing import TypeVar

from pocketmq.protocol.message.java_strings import extend_hash

K = TypeVar("K")
T = TypeVar("T")

_POWER_4, _POWER_2 = 31**4, 31**2
_UNIQUE_KEY_CHARACTERS = 32
_PREFIX_CHARACTERS = 24
_HEAD_CHARACTERS = 28
_TAIL_CHARACTERS = 4
_HEX_PAIRS = {pair: extend_hash(0, pair) for pair in (f"{number:02X}" for number in range(256))}
_MAX_TOPICS = 1024
_MAX_TEXTS_PER_TOPIC = 256
_MAX_PAIRS = 8192


class KeyHash:
    """Exact hashes with bounded memories of pieces; a full memory is emptied and fills again. Owner: the event-loop
    thread."""

    def __init__(self) -> None:
        self._heads: dict[str, dict[str, int]] = {}
        self._prefixes: dict[str, dict[str, int]] = {}
        self._topics: dict[str, int] = {}
        self._tags: dict[str, dict[str, int]] = {}
        self._key_prefixes: dict[str, dict[str, int]] = {}
        self._newest_prefix = ""
        self._pairs: dict[str, int] = {}

    def starts(self, topic: str) -> tuple[int, int]:
        """Java's hashes of `topic#` and `topic#T#`, 0 ... 2^32-1."""
        start = self._start(topic)
        return start, extend_hash(start, "T#")

    def of(self, topic: str, key: str) -> int:
        """Hash of `topic#key`, 0 ... 2^31-1."""
        prefixes = self._key_prefixes.get(topic)
        start = prefixes.get(key[:-4]) if prefixes is not None else None
        if start is None:
            self._learn_prefix(topic, key)
            return self._of_any(topic, key)
        pairs = self._pairs
        try:
            # A key with fewer than four characters has no such pairs, so it raises KeyError.
            value = (start * _POWER_4 + pairs[key[-4:-2]] * _POWER_2 + pairs[key[-2:]]) & 0xFFFFFFFF
        except KeyError:
            self._learn_pairs(key)
            return self._of_any(topic, key)
        return value if value < 0x80000000 else (0x1_0000_0000 - value) & 0x7FFFFFFF

    def _learn_prefix(self, topic: str, key: str) -> None:
        prefix = key[:-_TAIL_CHARACTERS]
        if prefix == self._newest_prefix:
            _remember(self._key_prefixes, topic, prefix, extend_hash(0, f"{topic}#{prefix}"))
        else:
            self._newest_prefix = prefix

    def _learn_pairs(self, key: str) -> None:
        tail = key[-_TAIL_CHARACTERS:]
        if len(tail) == _TAIL_CHARACTERS and tail.isascii():  # one UTF-16 unit each
            _limit(self._pairs, _MAX_PAIRS)
            for pair in (tail[:2], tail[2:]):
                self._pairs[pair] = extend_hash(0, pair)

    def _of_any(self, topic: str, key: str) -> int:
        return _absolute(extend_hash(self._start(topic), key))

    def _start(self, topic: str) -> int:
        start = self._topics.get(topic)
        if start is None:
            _limit(self._topics, _MAX_TOPICS)
            start = self._topics[topic] = extend_hash(0, topic + "#")
        return start

    def of_unique(self, topic: str, key: str) -> int:
        """As `of`, for keys made like UNIQ_KEY; any other key is right too, only slower."""
        pairs = _HEX_PAIRS
        try:
            value = (
                (
                    self._heads[topic][key[:28]] * _POWER_4  # _HEAD_CHARACTERS
                    + pairs[key[28:30]] * _POWER_2
                    + pairs[key[30:]]
                )
                & 0xFFFFFFFF
            )
        except KeyError:
            return self._learn(topic, key)
        return value if value < 0x80000000 else (0x1_0000_0000 - value) & 0x7FFFFFFF

    def _learn(self, topic: str, key: str) -> int:
        if len(key) != _UNIQUE_KEY_CHARACTERS:
            return self._of_any(topic, key)
        try:
            head = (
                (
                    self._prefixes[topic][key[:24]] * _POWER_4  # _PREFIX_CHARACTERS
                    + _HEX_PAIRS[key[24:26]] * _POWER_2
                    + _HEX_PAIRS[key[26:28]]
                )
                & 0xFFFFFFFF
            )
        except KeyError:
            prefix = key[:_PREFIX_CHARACTERS]
            _remember(self._prefixes, topic, prefix, extend_hash(0, f"{topic}#{prefix}"))
            head = extend_hash(0, f"{topic}#{key[:_HEAD_CHARACTERS]}")
        _remember(self._heads, topic, key[:_HEAD_CHARACTERS], head)
        return _absolute(extend_hash(head, key[_HEAD_CHARACTERS:]))

    def of_tags(self, topic: str, tags: str) -> int:
        """Hash of `topic#T#tags`, the 5.x entry for a tag."""
        try:
            return self._tags[topic][tags]
        except KeyError:
            value = _absolute(extend_hash(0, f"{topic}#T#{tags}"))
            _remember(self._tags, topic, tags, value)
            return value


def _absolute(value: int) -> int:
    """Java's Math.abs of the signed reading, with its one negative result made 0."""
    return value if value < 0x80000000 else (0x1_0000_0000 - value) & 0x7FFFFFFF


def _remember(memory: dict[str, dict[str, int]], topic: str, text: str, value: int) -> None:
    known = memory.get(topic)
    if known is None:
        _limit(memory, _MAX_TOPICS)
        known = memory[topic] = {}
    _limit(known, _MAX_TEXTS_PER_TOPIC)
    known[text] = value


def _limit(memory: dict[K, T], size: int) -> None:
    if len(memory) >= size:
        memory.clear()
