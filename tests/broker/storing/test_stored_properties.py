"""Order of stored properties. The texts were read from the stores of official 4.9.7 and 5.5.0 brokers."""

from hypothesis import given
from hypothesis import strategies as st
from pocketmq.broker.broker import Broker
from pocketmq.core.properties import BUCKETS, encode_stored
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.properties import decode_properties, encode_properties_text
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC
from pocketmq.protocol.requests.send import SendBatchMessage

from broker_fakes import ask, record_at, send_request

JAVA_DELAYED_4 = "REAL_TOPIC KEYS UNIQ_KEY CLUSTER DELAY WAIT REAL_QID"


async def test_line_4_puts_wait_back_after_what_it_added(broker4: Broker) -> None:
    """A Java client's message with a delay level, read from the store of 4.9.7: WAIT behind DELAY, in one bucket."""
    sent = encode_properties_text({"KEYS": "k", "UNIQ_KEY": "u", "WAIT": "true", "DELAY": "1"})
    await ask(broker4, send_request(properties=sent), b"later")
    assert names_at(broker4, SCHEDULE_TOPIC) == JAVA_DELAYED_4.split()


async def test_line_4_adds_the_properties_of_a_batch_in_the_same_order(broker4: Broker) -> None:
    """Read from the store of 4.9.7: CLUSTER before WAIT, though WAIT came first."""
    element = BatchElement(0, b"one", encode_properties_text({"KEYS": "k", "UNIQ_KEY": "u"}).encode())
    request = send_request(
        kind=SendBatchMessage, properties=encode_properties_text({"WAIT": "true"}), batch=True
    )
    await ask(broker4, request, encode_batch([element]))
    assert names_at(broker4, "orders") == ["KEYS", "UNIQ_KEY", "CLUSTER", "WAIT"]


def names_at(broker: Broker, topic: str) -> list[str]:
    return list(decode_properties(record_at(broker, topic).properties))


@given(
    st.dictionaries(st.text("abcXYZ019", min_size=1), st.text("abc", min_size=1), max_size=150),
    st.booleans(),
)
def test_nothing_is_lost_and_storing_again_changes_nothing(properties: dict[str, str], is_5: bool) -> None:
    stored = encode_stored(properties, BUCKETS[is_5], is_5)
    again = decode_properties(stored)
    assert again == properties
    assert encode_stored(again, BUCKETS[is_5], is_5) == stored
