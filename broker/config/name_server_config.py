"""The settings of the name server: the official keys it honours, as typed values.

Reads like `broker_config.py`: a field is the official key in snake_case, its default the official one unless a comment
gives the reason for another.
"""

import msgspec


class NameServerConfig(msgspec.Struct, kw_only=True):
    """Official `NamesrvConfig`, and `listenPort` of its `NettyServerConfig`."""

    listen_port: int = 9876
    kv_config_path: str = ""
    """JSON file of the key-value settings; empty: in memory only. Official: ~/namesrv/kvConfig.json."""
    config_store_path: str = ""
    """File of settings changed over the wire; empty: none. Official: ~/namesrv/namesrv.properties."""
    order_message_enable: bool = False
    return_order_topic_config_to_broker: bool = True
    scan_not_active_broker_interval: int = 5000
    support_acting_master: bool = False
    enable_all_topic_list: bool = True
    enable_topic_list: bool = True
    notify_min_broker_id_changed: bool = False
    need_wait_for_service: bool = False
    wait_seconds_for_service: int = 45
    delete_topic_with_broker_registration: bool = False
    config_black_list: str = "configBlackList;configStorePath;kvConfigPath"
    not_applied: dict[str, str] = msgspec.field(default_factory=dict)
    """Official keys that were set but are not honoured, and changes over the wire that wait for a restart."""
