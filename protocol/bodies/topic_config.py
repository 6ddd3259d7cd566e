"""TopicConfig: the settings of one topic (queues, permissions, attributes).

Here are the value, its JSON and the one-line text of compressed registrations. The table of topics, with the rules of
creation, is `pocketmq.broker.tables.topic_table`.

    topicName readQueueNums writeQueueNums perm topicFilterType [attributes JSON]      separated by one space

The text has no order flag and no topicSysFlag: the official writer drops them, too.
"""

from typing import Final

import msgspec
from msgspec import field

from ..errors import BodyError
from ..text import fastjson
from .body import Body, DataVersion, Int

DEFAULT_QUEUE_NUMS: Final = 16
SINGLE_TAG: Final = "SINGLE_TAG"
MULTI_TAG: Final = "MULTI_TAG"


class TopicConfig(Body, frozen=True, kw_only=True):
    """Official TopicConfig. `perm`: 4 read, 2 write, 1 inherit. 4.x does not know `attributes`."""

    topic_name: str | None = None
    read_queue_nums: Int = DEFAULT_QUEUE_NUMS
    write_queue_nums: Int = DEFAULT_QUEUE_NUMS
    perm: Int = 6
    topic_filter_type: str = SINGLE_TAG
    topic_sys_flag: Int = 0
    order: bool = False
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`topic_name` of a config in a table."""
        return self.topic_name or ""

    @property
    def message_type(self) -> str:
        """`NORMAL`, `FIFO`, `DELAY`, `TRANSACTION`, `MIXED`, `PRIORITY`, `LITE` or `UNSPECIFIED`."""
        return self.attributes.get("message.type", "NORMAL")


class TopicConfigSerializeWrapper(Body, frozen=True, kw_only=True):
    """The topic table of a 4.x broker; also the file topics.json."""

    topic_config_table: dict[str, TopicConfig] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)


class CreateTopicListRequestBody(Body, frozen=True):
    """Topics to create; attribute keys have the prefix `+` or `-`."""

    topic_config_list: list[TopicConfig] | None = None


def from_text(text: str) -> TopicConfig:
    """Official TopicConfig.decode: 5 fields, in 5.x a sixth; attributes that cannot be parsed are dropped."""
    parts = text.split(" ")
    if len(parts) < 5:
        raise BodyError(f"topic record: it needs 5 fields and has {len(parts)}: {text[:80]!r}")
    try:
        read_queue_nums, write_queue_nums, perm = msgspec.convert(parts[1:4], list[Int], strict=False)
    except msgspec.ValidationError as error:
        raise BodyError(
            f"topic record: queue numbers and perm must be whole numbers: {text[:80]!r}"
        ) from error
    attributes: dict[str, str] = {}
    if len(parts) > 5 and parts[5]:
        try:
            attributes = fastjson.decode(parts[5], dict[str, str])
        except BodyError:
            pass  # as in the official reader: the topic matters more than its attributes
    return TopicConfig(
        topic_name=parts[0],
        read_queue_nums=read_queue_nums,
        write_queue_nums=write_queue_nums,
        perm=perm,
        topic_filter_type=parts[4],
        attributes=attributes,
    )
