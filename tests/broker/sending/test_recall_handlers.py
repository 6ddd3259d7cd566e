"""When a recall is answered. What it does to the message is in `delayed/test_timer.py`."""

from pocketmq.broker.network.dispatch import HELD
from pocketmq.protocol.requests.send import RecallMessage

from broker_fakes import FakeConnection, MakeBroker, as_asked, send, send_request, turns
from timer_sends import with_timer


async def test_recall_is_answered_once_it_is_on_disk(broker_maker: MakeBroker) -> None:
    """SYNC_FLUSH: else a power loss could deliver a message whose recall was confirmed."""
    broker = with_timer(broker_maker(store={"flush_disk_type": "SYNC_FLUSH"}, recall_message_enable=True))
    connection = FakeConnection()
    properties = "TIMER_DELAY_SEC\x014\x02UNIQ_KEY\x01U\x02"
    request = send_request("T", queue_id=1, properties=properties)
    assert await send(broker, request, b"x", connection=connection) is HELD
    broker.store.flush_pass()
    await turns()
    handle = as_asked(connection.late_answers.pop()).fields["recallHandle"]

    recall = RecallMessage(producer_group="pg", topic="T", recall_handle=handle)
    assert await send(broker, recall, connection=connection) is HELD
    await turns()
    assert connection.late_answers == []
    broker.store.flush_pass()
    await turns()
    (answer,) = connection.late_answers
    assert as_asked(answer).fields == {"msgId": "U", "MSG_REGION": "DefaultRegion"}
