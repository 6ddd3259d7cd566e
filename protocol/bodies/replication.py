"""Bodies about replication: the state of master and slaves."""

from msgspec import field

from .body import Body


class HAClientRuntimeInfo(Body, frozen=True):
    """Replication as a slave sees it."""

    master_addr: str | None = None
    transferred_byte_in_second: int = 0
    max_offset: int = 0
    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0


class HAConnectionRuntimeInfo(Body, frozen=True):
    """Replication to one slave as the master sees it. `diff` is how many bytes the slave is behind."""

    addr: str | None = None
    slave_ack_offset: int = 0
    diff: int = 0
    in_sync: bool = False
    transferred_byte_in_second: int = 0
    transfer_from_where: int = 0


class HARuntimeInfo(Body, frozen=True):
    """The state of replication, of a master or of a slave."""

    master: bool = False
    master_commit_log_max_offset: int = 0
    in_sync_slave_nums: int = 0
    ha_connection_info: list[HAConnectionRuntimeInfo] = field(default_factory=list)
    ha_client_runtime_info: HAClientRuntimeInfo = field(default_factory=HAClientRuntimeInfo)
