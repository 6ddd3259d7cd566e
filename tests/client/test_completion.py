"""What an editor offers on a client or a message: only what its user calls."""

import inspect

import pytest
from pocketmq.client import (
    LitePullConsumer,
    Message,
    MessageExt,
    Producer,
    PullConsumer,
    PushConsumer,
    Requester,
    TransactionProducer,
)

CLIENT = {"start", "shutdown", "settings", "group", "client_id"}
PRODUCER = CLIENT | {
    *("send", "send_nowait", "send_oneway", "send_batch", "flush", "reply", "resend", "recall", "queues"),
    "add_retry_response_code",
}
MEMBER = CLIENT | {*("subscribe", "unsubscribe", "queues", "wait_assigned", "assignment", "positions", "lag")}
POSITIONS = {"min_offset", "max_offset", "search_offset", "earliest_store_time", "committed", "commit"}
FIELDS = {*("topic", "body", "tags", "keys", "properties", "flag")}
STORED = {
    *("queue_id", "queue_offset", "broker_name", "queue", "min_offset", "max_offset", "commit_log_offset"),
    *("message_id", "offset_message_id", "transaction_id", "reconsume_times", "consume_start_ms"),
    *("born_timestamp", "born_host", "store_timestamp", "store_host", "store_size", "record"),
}


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (Producer, PRODUCER),
        (TransactionProducer, PRODUCER | {"send_in_transaction"}),
        (Requester, PRODUCER | {"request"}),
        (PushConsumer, MEMBER | {"run", "fetch", "suspend", "resume"}),
        (
            LitePullConsumer,
            MEMBER
            | {
                *("poll", "commit", "committed", "assign", "seek", "seek_to_begin", "seek_to_end"),
                *("pause", "resume", "offset_for_timestamp", "on_topic_queues_changed"),
            },
        ),
        (PullConsumer, CLIENT | POSITIONS | {"queues", "pull", "lag", "explain", "broker_address"}),
        (
            Message,
            FIELDS | {"delay_level", "delay", "deliver_at", "wait_store_ok", "is_delayed", "wire_properties"},
        ),
        (MessageExt, FIELDS | STORED),
    ],
)
def test_only_what_a_user_calls_is_offered(kind: type, names: set[str]) -> None:
    offered = {name for name in dir(kind) if not name.startswith("_")} | {
        name for base in kind.__mro__ for name in inspect.get_annotations(base) if name[0] != "_"
    }
    assert offered - names == set()
    assert names - offered == set()
