"""The name of every file and folder of a store, once. What is in them: FORMAT.md.

Names below `CONFIG` are those of the tables, the broker's own tables among them; each is written with a backup of the
same name and `.bak` behind it.
"""

from typing import Final

COMMIT_LOG: Final = "commitlog"
"""The default folder; storePathCommitLog may name another."""
CONSUME_QUEUE: Final = "consumequeue"
INDEX: Final = "index"
CHECKPOINT: Final = "checkpoint"
ABORT: Final = "abort"
LOCK: Final = "lock"
LOST: Final = "lost"
"""Beside the log's folder."""
TIMER_WHEEL: Final = "timerwheel"
TIMER_LOG: Final = "timerlog"
CONFIG: Final = "config"

TOPICS: Final = "topics.json"
GROUPS: Final = "subscriptionGroup.json"
CONSUMER_OFFSETS: Final = "consumerOffset.json"
LIGHT_CONSUMER_OFFSETS: Final = "lmqConsumerOffset.json"
DELAY_OFFSETS: Final = "delayOffset.json"
CONSUMER_FILTERS: Final = "consumerFilter.json"
CONSUMER_ORDER: Final = "consumerOrderInfo.json"
REQUEST_MODES: Final = "messageRequestMode.json"
USERS: Final = "users.json"
ACLS: Final = "acls.json"
TIMER_CHECKPOINT: Final = "timercheck"
TIMER_PROGRESS: Final = "timerprogress"
TIMER_METRICS: Final = "timermetrics"
TRANSACTION_METRICS: Final = "transactionMetrics"

BACKUP_ENDING: Final = ".bak"


def file_name(position: int) -> str:
    """Name of a log or queue file: the position of its first byte, in 20 digits."""
    return f"{position:020d}"
