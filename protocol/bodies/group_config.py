"""SubscriptionGroupConfig: the settings of one consumer group.

Here are the value and its parts. The table of groups is `pocketmq.broker.tables.group_table`; the connected members are
in `pocketmq.broker.membership`.
"""

from typing import Final

from msgspec import field

from .body import Body, DataVersion, Int, Long

_SECOND_MS: Final = 1000
_MINUTE_MS: Final = 60 * _SECOND_MS
DEFAULT_RETRY_INTERVALS_MS: Final = (
    *(seconds * _SECOND_MS for seconds in (1, 5, 10, 30)),
    *(minutes * _MINUTE_MS for minutes in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 60, 120)),
)


class CustomizedRetryPolicy(Body, frozen=True):
    """Delays in ms, one for each try; the last one repeats."""

    next: tuple[Long, ...] = DEFAULT_RETRY_INTERVALS_MS


class ExponentialRetryPolicy(Body, frozen=True):
    """`initial` ms times `multiplier` to the power of tries, at most `max` ms."""

    initial: Long = 5_000
    max: Long = 7_200_000
    multiplier: Long = 2


class GroupRetryPolicy(Body, frozen=True):
    """`type` is CUSTOMIZED or EXPONENTIAL; a missing policy of that type means its defaults."""

    type: str = "CUSTOMIZED"
    exponential_retry_policy: ExponentialRetryPolicy | None = None
    customized_retry_policy: CustomizedRetryPolicy | None = None


class SimpleSubscriptionData(Body, frozen=True):
    """A subscription stored with the group by administrators (5.x)."""

    topic: str | None = None
    expression_type: str | None = None
    expression: str | None = None
    version: Long = 0


class SubscriptionGroupConfig(Body, frozen=True, kw_only=True):
    """Official SubscriptionGroupConfig with its defaults. 4.x ignores `consume_message_orderly` and the members from
    `group_retry_policy` on.
    """

    group_name: str | None = None
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: Int = 1
    retry_max_times: Int = 16
    broker_id: Long = 0
    which_broker_when_consume_slowly: Long = 1
    notify_consumer_ids_changed_enable: bool = True
    group_retry_policy: GroupRetryPolicy = GroupRetryPolicy()
    group_sys_flag: Int = 0
    consume_timeout_minute: Int = 15
    subscription_data_set: list[SimpleSubscriptionData] | None = None
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`group_name` of a config in a table."""
        return self.group_name or ""


class SubscriptionGroupWrapper(Body, frozen=True, kw_only=True):
    """The group table; also the file subscriptionGroup.json."""

    subscription_group_table: dict[str, SubscriptionGroupConfig] = field(default_factory=dict)
    forbidden_table: dict[str, dict[str, Int]] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)


class SubscriptionGroupList(Body, frozen=True):
    """Groups to create."""

    group_config_list: list[SubscriptionGroupConfig] | None = None
