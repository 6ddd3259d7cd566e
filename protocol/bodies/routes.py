"""Bodies of the name server: routes, clusters, lists of topics, key-value tables.

The route of a topic is written in two dialects (below); everything else has one form. Registrations are in
`registration.py`.

    default     {"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911"},...
    standard    {"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.1:10911"},...
"""

from msgspec import field

from ..languages import V4_9_4
from ..message.flags import is_readable
from ..message.message_queue import MessageQueue
from ..text import fastjson
from .body import Body, Int


class BrokerData(Body, frozen=True):
    """Addresses of one broker group. In `broker_addrs`, id 0 is the master.

    4.x has no `enable_acting_master`; None leaves it out.
    """

    cluster: str | None = None
    broker_name: str | None = None
    broker_addrs: dict[int, str] | None = None
    zone_name: str | None = None
    enable_acting_master: bool | None = False


class QueueData(Body, frozen=True):
    """Queues of a topic on one broker group."""

    broker_name: str | None = None
    read_queue_nums: Int = 0
    write_queue_nums: Int = 0
    perm: Int = 0
    topic_sys_flag: Int = 0


class TopicQueueMappingInfo(Body, frozen=True):
    """Which logical queues of a static topic (5.x) a broker holds: `curr_id_map` maps logical to physical ids."""

    topic: str | None = None
    scope: str | None = "__global__"
    total_queues: int = 0
    bname: str | None = None
    epoch: int = 0
    dirty: bool = False
    curr_id_map: dict[int, int] | None = field(default_factory=dict)


class TopicRouteData(Body, frozen=True):
    """Where the queues of a topic are."""

    order_topic_conf: str | None = None
    queue_datas: list[QueueData] = field(default_factory=list)
    broker_datas: list[BrokerData] = field(default_factory=list)
    filter_server_table: dict[str, list[str]] = field(default_factory=dict)
    topic_queue_mapping_by_broker: dict[str, TopicQueueMappingInfo] | None = None

    def read_queues(self, topic: str) -> list[MessageQueue]:
        """The queues that consumers read, in the order of `queue_datas`; brokers without a master count, too."""
        return [
            MessageQueue(topic, data.broker_name or "", queue_id)
            for data in self.queue_datas
            if is_readable(data.perm)
            for queue_id in range(data.read_queue_nums)
        ]

    def encode_for(self, version: int, *, accept_standard_json_only: bool = False, emulate: int = 5) -> bytes:
        """The JSON for a client of that version: standard JSON from V4_9_4 on. 4.x also escapes characters that are
        not ASCII.
        """
        if version < V4_9_4 and not accept_standard_json_only:
            return self.encode()
        return fastjson.dumps(self, quote_integer_keys=True, browser_compatible=emulate < 5)


class ClusterInfo(Body, frozen=True):
    """Broker groups by name, and the names in each cluster."""

    broker_addr_table: dict[str, BrokerData] | None = None
    cluster_addr_table: dict[str, list[str]] | None = None


class TopicList(Body, frozen=True):
    """Names of topics."""

    topic_list: list[str] = field(default_factory=list)
    broker_addr: str | None = None


class KVTable(Body, frozen=True):
    """Keys and values."""

    table: dict[str, str] = field(default_factory=dict)


class BrokerMemberGroup(Body, frozen=True):
    """The members of a broker group by id (5.x)."""

    cluster: str | None = None
    broker_name: str | None = None
    broker_addrs: dict[int, str] = field(default_factory=dict)


class GetBrokerMemberGroupResponseBody(Body, frozen=True):
    """The member group of a broker."""

    broker_member_group: BrokerMemberGroup | None = None
