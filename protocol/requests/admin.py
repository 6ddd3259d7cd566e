"""Requests that inspect or configure a running broker: settings, figures, cold data.

Users and rights are in `security.py`.
"""

from ..bodies.body import PropertiesText, Text
from ..bodies.broker import BrokerStatsData
from ..bodies.routes import KVTable
from ..wire.schema import NoReply, Reply, Request, field, request


@request(25, body=PropertiesText)
class UpdateBrokerConfig(Request[NoReply], frozen=True, kw_only=True):
    """Change settings."""


class GetBrokerConfigReply(Reply, frozen=True, kw_only=True):
    """The version of the settings, a DataVersion as JSON text. `GetBrokerConfigResponseHeader`."""

    version: str


@request(26, reply_body=PropertiesText)
class GetBrokerConfig(Request[GetBrokerConfigReply], frozen=True, kw_only=True):
    """The settings."""


@request(28)
class GetBrokerRuntimeInfo(Request[KVTable], frozen=True, kw_only=True):
    """Figures of a running broker."""


@request(315)
class ViewBrokerStatsData(Request[BrokerStatsData], frozen=True, kw_only=True):
    """One series of the statistics, such as TOPIC_PUT_NUMS of a topic. `ViewBrokerStatsDataRequestHeader`."""

    stats_name: str
    stats_key: str


@request(2001, only_in=5, body=PropertiesText)
class UpdateColdDataFlowCtrConfig(Request[NoReply], frozen=True, kw_only=True):
    """Limit what groups read from disk: one `group=threshold` a line."""


@request(2002, only_in=5, body=Text)
class RemoveColdDataFlowCtrConfig(Request[NoReply], frozen=True, kw_only=True):
    """Remove the limit of a group. The body is its name."""


@request(2003, only_in=5)
class GetColdDataFlowCtrInfo(Request[Text], frozen=True, kw_only=True):
    """The limits and what was read, as a JSON object."""


@request(2004, "SET_COMMITLOG_READ_MODE", only_in=5)
class SetCommitLogReadMode(Request[NoReply], frozen=True, kw_only=True):
    """Advise the system how the log is read: 0 normal, 1 random. There is no official header class, only this field."""

    read_ahead_mode: str | None = field(name="READ_AHEAD_MODE", default=None)


@request(5001, only_in=5)
class SwitchTimerEngine(Request[NoReply], frozen=True, kw_only=True):
    """Keep delayed messages in RocksDB (R) or in the timer wheel of files (F). There is no official header class, only
    this field.
    """

    engine_type: str | None = field(name="E_T", default=None)
