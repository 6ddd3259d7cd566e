"""POP receipts, and the retry topics that their flags name."""

import msgspec
import pytest
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.pop_receipt import (
    normal_topic,
    parse_receipt,
    parse_receipt_of_ack,
    real_topic,
    retry_flag,
)


@pytest.mark.parametrize("text", ["", " ", "1 2 3 4 5", "a b c d e f", "1 2 3 4 0 ", "9" * 30 + " 1 1 1 0 b"])
def test_a_broken_receipt_is_refused(text: str) -> None:
    for parse in (parse_receipt, parse_receipt_of_ack):
        with pytest.raises(BodyError, match="not a pop receipt"):
            parse(text)


def test_a_broker_reads_a_receipt_without_queue_and_offset() -> None:
    whole = parse_receipt("100 1700000000000 60000 3 1 broker-a 2 117")
    for text in ("100 1700000000000 60000 3 1 broker-a", "100 1700000000000 60000 3 1 broker-a x y"):
        assert parse_receipt_of_ack(text) == msgspec.structs.replace(whole, queue_id=-1, offset=-1)
        with pytest.raises(BodyError, match="not a pop receipt"):
            parse_receipt(text)


@pytest.mark.parametrize(
    ("topic", "flag"), [("orders", "0"), ("%RETRY%g_orders", "1"), ("%RETRY%g+orders", "2")]
)
def test_a_retry_topic_is_recognised_by_its_name(topic: str, flag: str) -> None:
    assert retry_flag(topic) == flag
    assert normal_topic(topic, "g") == "orders"
    assert real_topic("orders", "g", flag) == topic
