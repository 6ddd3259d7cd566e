"""Which dead letters a job is about, where they came from, and what becomes of them.

A dead letter has its topic of origin as DLQ_ORIGIN_TOPIC or RETRY_TOPIC. Groups of gRPC clients, and others that pop,
have one retry topic for each topic, `%RETRY%GROUP_TOPIC` or `%RETRY%GROUP+TOPIC`. A message that died after retries of
such a group has that one as RETRY_TOPIC.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec
from pocketmq.protocol.message.properties import DLQ_ORIGIN_TOPIC, RETRY_TOPIC
from pocketmq.protocol.message.topics import (
    DLQ_PREFIX,
    RETRY_PREFIX,
    is_dlq_topic,
    pop_retry_topic,
    retry_topic,
)

from ..sql.message_input import MessageInput, sql_text

TIMEOUT_MS: Final = 10_000
ORIGIN, GROUP = "origin", "group"
"""Where copies go: to the topic of origin, or to the retry topic of the group."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters, and what becomes of them."""

    groups: tuple[str, ...] = ()
    origin: str | None = None
    tag: str | None = None
    is_retrying_shown: bool = False
    least_attempts: int | None = None
    send_back: str | None = None
    sends_again: bool = False
    is_dry: bool = False

    def condition(self, source: MessageInput) -> str:
        """SQL over the columns of messages; the origin is another condition."""
        conditions = [source.time_condition()]
        if self.tag is not None:
            conditions.append(f"tags = {sql_text(self.tag)}")
        if self.least_attempts is not None:
            conditions.append(f"reconsumeTimes >= {self.least_attempts}")
        return " and ".join(conditions)

    def is_of_all(self, source: MessageInput) -> bool:
        """Whether every dead letter of its groups is wanted."""
        return (
            (self.origin, self.tag, self.least_attempts) == (None, None, None)
            and source.since_ms is None
            and source.until_ms is None
        )


def group_of(topic: str, existing: Collection[str]) -> tuple[str, str | None]:
    """The group of a dead letter topic or retry topic, and the topic of origin if the name says it."""
    if is_dlq_topic(topic):
        return topic.removeprefix(DLQ_PREFIX), None
    group, separator, origin = topic.removeprefix(RETRY_PREFIX).partition("+")
    if separator:
        return group, origin
    parts = group.split("_")  # both names may have underscores
    for count in range(1, len(parts)):
        if (origin := "_".join(parts[count:])) in existing:
            return "_".join(parts[:count]), origin
    return group, None


def placed_sql(topics: Iterable[str], existing: Collection[str]) -> tuple[str, str]:
    """SQL for the group of a message in one of the topics, and for its topic of origin as stored."""
    places = {topic: group_of(topic, existing) for topic in topics}
    groups = " ".join(
        f"when {sql_text(topic)} then {sql_text(group)}" for topic, (group, _) in places.items()
    )
    origins = "".join(
        f" when {sql_text(topic)} then {sql_text(origin)}" for topic, (_, origin) in places.items() if origin
    )
    of_name = f", case topic{origins} end" if origins else ""
    stored = f"coalesce(properties['{DLQ_ORIGIN_TOPIC}'], properties['{RETRY_TOPIC}']{of_name})"
    return f"case topic {groups} end", stored


ORIGIN_SQL: Final = f"""
case when startswith(storedOrigin, concat('{RETRY_PREFIX}', consumerGroup, '_'))
       or startswith(storedOrigin, concat('{RETRY_PREFIX}', consumerGroup, '+'))
     then substring(storedOrigin, length(consumerGroup) + {len(RETRY_PREFIX) + 2}) else storedOrigin end
"""
"""The topic of origin, as `origin_of`, over the columns of `placed_sql`."""


def origin_of(properties: Mapping[str, str], group: str) -> str | None:
    """The topic of origin of a dead letter of a group; None if its properties do not say it."""
    stored = properties.get(DLQ_ORIGIN_TOPIC) or properties.get(RETRY_TOPIC)
    for separator in "_+":
        if stored is not None:
            stored = stored.removeprefix(f"{retry_topic(group)}{separator}")
    return stored


def retry_topic_of(group: str, origin: str, existing: Collection[str]) -> str:
    """Where a group waits for retries of a topic: its retry topic for that topic if it has one, else its only one."""
    names = (pop_retry_topic(origin, group, v2=is_newer) for is_newer in (True, False))
    return next((name for name in names if name in existing), retry_topic(group))
