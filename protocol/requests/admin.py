"""Requests that inspect or configure a running broker: settings and figures.

Users and rights are in `security.py`.
"""

from ..bodies.body import PropertiesText
from ..bodies.broker import BrokerStatsData
from ..bodies.routes import KVTable
from ..wire.schema import NoReply, Reply, Request, request


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
