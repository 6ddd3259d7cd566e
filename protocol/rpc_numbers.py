"""The calls of gRPC clients by number, where a request is named by a number: in journals, and to watchers. Ours.

They are above every request code, and stay as they are: journals keep them.
"""

from typing import Final

FIRST_RPC: Final = 1_000_000
"""Numbers from here on are rpcs."""
RPC_NUMBERS: Final = {
    "QueryRoute": 1_000_000,
    "Heartbeat": 1_000_001,
    "SendMessage": 1_000_002,
    "QueryAssignment": 1_000_003,
    "ReceiveMessage": 1_000_004,
    "AckMessage": 1_000_005,
    "ForwardMessageToDeadLetterQueue": 1_000_006,
    "PullMessage": 1_000_007,
    "UpdateOffset": 1_000_008,
    "GetOffset": 1_000_009,
    "QueryOffset": 1_000_010,
    "EndTransaction": 1_000_011,
    "Telemetry": 1_000_012,
    "NotifyClientTermination": 1_000_013,
    "ChangeInvisibleDuration": 1_000_014,
    "RecallMessage": 1_000_015,
    "SyncLiteSubscription": 1_000_016,
}
"""By the name of the rpc in `apache.rocketmq.v2.MessagingService`."""
RPC_NAMES: Final = {number: name for name, number in RPC_NUMBERS.items()}
