"""Looking into a running broker and setting it: configuration, figures, cold data, broker containers.

Not here: users and rights (`security.py`).
"""

from ..bodies.body import PropertiesText, Text
from ..bodies.broker import BrokerStatsData
from ..bodies.routes import KVTable
from ..wire.schema import Int, Long, NoReply, Reply, Request, field, request


@request(25, body=PropertiesText)
class UpdateBrokerConfig(Request[NoReply], frozen=True, kw_only=True):
    """Change settings. Body: properties text, a `key=value` a line."""


class GetBrokerConfigReply(Reply, frozen=True, kw_only=True):
    """The version of the settings, a DataVersion as JSON text. `GetBrokerConfigResponseHeader`."""

    version: str


@request(26, reply_body=PropertiesText)
class GetBrokerConfig(Request[GetBrokerConfigReply], frozen=True, kw_only=True):
    """The settings; the reply's body is properties text."""


@request(27)
class TriggerDeleteFiles(Request[NoReply], frozen=True, kw_only=True):
    """A number nobody uses: official brokers answer REQUEST_CODE_NOT_SUPPORTED."""


@request(28)
class GetBrokerRuntimeInfo(Request[KVTable], frozen=True, kw_only=True):
    """Figures of a running broker; the reply's body is KVTable."""


@request(315)
class ViewBrokerStatsData(Request[BrokerStatsData], frozen=True, kw_only=True):
    """One series of the statistics, such as TOPIC_PUT_NUMS of a topic. `ViewBrokerStatsDataRequestHeader`.

    The reply's body is BrokerStatsData.
    """

    stats_name: str
    stats_key: str


class RegisterFilterServerReply(Reply, frozen=True, kw_only=True):
    """Which broker answered. `RegisterFilterServerResponseHeader`."""

    broker_name: str
    broker_id: Long


@request(301)
class RegisterFilterServer(Request[RegisterFilterServerReply], frozen=True, kw_only=True):
    """A class-filter process reports.

    `RegisterFilterServerRequestHeader`. A 4.9 header without a live user.
    """

    filter_server_addr: str


@request(302, body=Text)
class RegisterMessageFilterClass(Request[NoReply], frozen=True, kw_only=True):
    """Source text of a filter class.

    `RegisterMessageFilterClassRequestHeader`. A 4.9 header without a live user.
    """

    consumer_group: str
    topic: str
    class_name: str
    class_crc: Int = field(name="classCRC")


@request(355, only_in=5)
class ExportRocksdbConfigToJson(Request[NoReply], frozen=True, kw_only=True):
    """Write tables kept in RocksDB to their JSON files. `ExportRocksDBConfigToJsonRequestHeader`.

    `config_type`: topics, subscriptionGroups, consumerOffsets, joined by `;`.
    """

    config_type: str


@request(902, only_in=5)
class AddBroker(Request[NoReply], frozen=True, kw_only=True):
    """Start a broker inside a broker container. `AddBrokerRequestHeader`."""

    config_path: str | None = None


@request(903, only_in=5)
class RemoveBroker(Request[NoReply], frozen=True, kw_only=True):
    """Stop a broker inside a broker container. `RemoveBrokerRequestHeader`."""

    broker_name: str
    broker_cluster_name: str
    broker_id: Long


@request(2001, only_in=5, body=PropertiesText)
class UpdateColdDataFlowCtrConfig(Request[NoReply], frozen=True, kw_only=True):
    """Limit what groups read from disk. Body: properties text, a `group=threshold` a line."""


@request(2002, only_in=5, body=Text)
class RemoveColdDataFlowCtrConfig(Request[NoReply], frozen=True, kw_only=True):
    """Take such a limit away. Body: the group's name."""


@request(2003, only_in=5)
class GetColdDataFlowCtrInfo(Request[Text], frozen=True, kw_only=True):
    """The limits and what was read; the reply's body is a JSON object."""


@request(2004, "SET_COMMITLOG_READ_MODE", only_in=5)
class SetCommitLogReadMode(Request[NoReply], frozen=True, kw_only=True):
    """Advise the system how the log is read: 0 normal, 1 random. No official header class, a field alone."""

    read_ahead_mode: str | None = field(name="READ_AHEAD_MODE", default=None)


@request(5001, only_in=5)
class SwitchTimerEngine(Request[NoReply], frozen=True, kw_only=True):
    """Keep timed messages in RocksDB (R) or the file wheel (F). No official header class, a field alone."""

    engine_type: str | None = field(name="E_T", default=None)
