"""Properties that reroute a send: half messages sent back, and numbers that exceed an int."""

from typing import Any

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.protocol.message.properties import decode_properties, encode_properties_text
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC
from pocketmq.protocol.requests.send import SendMessageV2

from broker_fakes import ask
from transaction_sends import records


def a_send(topic: str = "orders", reconsume_times: int = 0, **properties: str) -> Any:
    return SendMessageV2(
        producer_group="pg",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=0,
        born_timestamp=1_700_000_000_000,
        flag=0,
        reconsume_times=reconsume_times,
        properties=encode_properties_text(properties),
    )


async def test_consumer_may_give_back_what_was_a_half_message(broker: Broker) -> None:
    """It counts as one only without reconsumeTimes and DELAY (SendMessageProcessor)."""
    broker.config.reject_transaction_message = True
    assert (await ask(broker, a_send(TRAN_MSG="true"), b"x")).code == 16
    assert (await ask(broker, a_send(TRAN_MSG="true", DELAY="3"), b"x")).code == 16
    assert (await ask(broker, a_send("%RETRY%g", 1, TRAN_MSG="true", DELAY="3"), b"x")).code == 0
    (waiting,) = records(broker, SCHEDULE_TOPIC, 2)
    assert decode_properties(waiting.properties)["REAL_TOPIC"] == "%RETRY%g"


@pytest.mark.parametrize("digits", [11, 20, 5000])
async def test_delay_level_that_no_int_holds_is_refused_in_words(broker: Broker, digits: int) -> None:
    answer = await ask(broker, a_send(DELAY="9" * digits), b"x")
    assert answer.code == 1
    assert "DELAY is not a number" in (answer.remark or "")
    assert broker.store.log_end <= 0


async def test_priority_that_no_int_holds_is_none(broker: Broker) -> None:
    answer = await ask(broker, a_send(_SYS_MSG_PRIORITY_="9" * 5000), b"x")
    assert (answer.code, answer.fields["queueId"]) == (0, "0")
