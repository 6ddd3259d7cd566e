"""RegisterBrokerBody: what a broker registers at a name server (103), in its two forms.

Plain JSON (5.x always, 4.x by default), or with `compressed=true` one zlib stream of

    int32 length + DataVersion JSON
    int32 count, count x (int32 length + topic record)                see topic_config.py
    int32 length + JSON list of filter servers
    int32 count, count x (int32 length + TopicQueueMappingInfo JSON)  in 5.x only

The name server keeps it in `pocketmq.broker.name_server.route_table`.
"""

import struct
from typing import Final

import msgspec
from msgspec import field

from ..errors import BodyError
from ..languages import V5_0_0
from ..message.compression import inflate
from ..text import fastjson
from .body import Body, DataVersion
from .routes import TopicQueueMappingInfo
from .topic_config import TopicConfig, from_text

MAX_REGISTRATION_BYTES: Final = 2 * 1024 * 1024
"""Longest content of a compressed registration: 40,000 topics."""
_INT: Final = struct.Struct(">i")


class LogicQueueMappingItem(Body, frozen=True):
    """One generation of a logical queue: from `logic_offset` on it is `queue_id` of broker `bname` (5.x)."""

    gen: int = 0
    queue_id: int = 0
    bname: str | None = None
    logic_offset: int = 0
    start_offset: int = 0
    end_offset: int = -1
    time_of_start: int = -1
    time_of_end: int = -1


class TopicQueueMappingDetail(TopicQueueMappingInfo, frozen=True):
    """The whole mapping of a static topic on one broker (5.x)."""

    hosted_queues: dict[int, list[LogicQueueMappingItem]] | None = field(default_factory=dict)


class TopicConfigAndQueueMapping(TopicConfig, frozen=True, kw_only=True):
    """The settings of a topic, with its mapping if it is static and the request asked for it."""

    mapping_detail: TopicQueueMappingDetail | None = None


class TopicConfigAndMappingSerializeWrapper(Body, frozen=True):
    """The topic table of a 5.x broker; the larger part of a registration."""

    topic_config_table: dict[str, TopicConfig] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)
    topic_queue_mapping_info_map: dict[str, TopicQueueMappingInfo] = field(default_factory=dict)
    topic_queue_mapping_detail_map: dict[str, TopicQueueMappingDetail] = field(default_factory=dict)
    mapping_data_version: DataVersion = field(default_factory=DataVersion)


class RegisterBrokerBody(Body, frozen=True):
    """A registration. Brokers before V3_0_11 send the wrapper alone."""

    topic_config_serialize_wrapper: TopicConfigAndMappingSerializeWrapper = field(
        default_factory=TopicConfigAndMappingSerializeWrapper
    )
    filter_server_list: list[str] = field(default_factory=list)


class _TopicsUndecoded(Body, frozen=True):
    topic_config_table: dict[str, msgspec.Raw] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)
    topic_queue_mapping_info_map: dict[str, TopicQueueMappingInfo] = field(default_factory=dict)


class UndecodedRegistration(Body, frozen=True):
    """A long registration before its topics are decoded, one by one (`decode_topic`)."""

    topic_config_serialize_wrapper: _TopicsUndecoded = field(default_factory=_TopicsUndecoded)
    filter_server_list: list[str] = field(default_factory=list)

    def with_topics(self, topics: dict[str, TopicConfig]) -> RegisterBrokerBody:
        """The same registration with its topics decoded."""
        wrapper = self.topic_config_serialize_wrapper
        return RegisterBrokerBody(
            topic_config_serialize_wrapper=TopicConfigAndMappingSerializeWrapper(
                topic_config_table=topics,
                data_version=wrapper.data_version,
                topic_queue_mapping_info_map=wrapper.topic_queue_mapping_info_map,
            ),
            filter_server_list=self.filter_server_list,
        )


def decode_topic(text: msgspec.Raw) -> TopicConfig:
    """One topic of a long registration. Raises BodyError."""
    return fastjson.decode(bytes(text), TopicConfig)


class CompressedRegistration(bytes):
    """The compressed form. Its reader is `decode_compressed_registration`, because it needs the sender's version."""


def decode_compressed_registration(data: bytes | memoryview, version: int) -> RegisterBrokerBody:
    """The compressed form. The sender's version decides whether the mapping section follows. Raises BodyError."""
    reader = _Reader(inflate(data, MAX_REGISTRATION_BYTES))
    data_version = fastjson.decode(reader.sized(), DataVersion)
    configs = (from_text(reader.sized().decode("utf-8", "replace")) for _ in range(reader.integer()))
    table = {config.name: config for config in configs}
    filter_servers = fastjson.decode(reader.sized(), list[str])
    mapping: dict[str, TopicQueueMappingInfo] = {}
    if version >= V5_0_0:
        for _ in range(reader.integer()):
            info = TopicQueueMappingInfo.decode(reader.sized())
            mapping[info.topic or ""] = info
    return RegisterBrokerBody(
        topic_config_serialize_wrapper=TopicConfigAndMappingSerializeWrapper(
            topic_config_table=table, data_version=data_version, topic_queue_mapping_info_map=mapping
        ),
        filter_server_list=filter_servers,
    )


class _Reader:
    """Takes the sections off one after the other."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def integer(self) -> int:
        value: int = _INT.unpack(self._bytes(_INT.size))[0]
        if value < 0:
            raise BodyError(
                f"RegisterBrokerBody: count or length {value} at byte {self._position - _INT.size}"
            )
        return value

    def sized(self) -> bytes:
        return self._bytes(self.integer())

    def _bytes(self, length: int) -> bytes:
        start, self._position = self._position, self._position + length
        if self._position > len(self._content):
            raise BodyError(f"RegisterBrokerBody: ends inside a section of {length} bytes at byte {start}")
        return self._content[start : self._position]
