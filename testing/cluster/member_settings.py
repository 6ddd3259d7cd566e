"""The settings of each broker of a cluster: those that the test gives, and those by which its brokers differ."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.errors import StartError

from ..server.settings import Value, broker_config

CLUSTER_NAME: Final = "DefaultCluster"
_CHOSEN: Final = (
    "brokerName",
    "brokerId",
    "namesrvAddr",
    "listenPort",
    "haListenPort",
    "haMasterAddress",
    "advertise",
    "grpcServerPort",
)
"""What the cluster chooses itself."""
_DEFAULTS: Final[Mapping[str, Value]] = {
    # The official intervals: a killed broker forgets as much as an official one.
    "flushConsumerOffsetInterval": 5_000,
    "flushDelayOffsetInterval": 10_000,
}


def check_settings(settings: Mapping[str, Value]) -> None:
    """Raises `StartError` for a key that the cluster chooses."""
    for key in settings:
        if key in _CHOSEN:
            raise StartError(f"settings: a cluster chooses {key} for each of its members; leave it out")


def member_config(
    settings: Mapping[str, Value], *, name: str, broker_id: int, store: Path, port: int, name_servers: str
) -> BrokerConfig:
    """The settings of one broker. Raises `StartError`: one line with key and value."""
    own: dict[str, Value] = {
        **_DEFAULTS,
        **settings,
        "brokerName": name,
        "brokerId": broker_id,
        "namesrvAddr": name_servers,
        "listenPort": port,
    }
    if broker_id:
        own["brokerRole"] = "SLAVE"
    return broker_config(own, conf=None, store=store, is_temporary=True)
