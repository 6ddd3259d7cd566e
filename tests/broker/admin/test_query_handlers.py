"""12: no answer has more messages than a batch. All else is in the recorded conversations `queries` and
`administration`."""

from pocketmq.broker.broker import Broker
from pocketmq.protocol.message.record import decode_records
from pocketmq.protocol.requests.pull import QueryMessage

from broker_fakes import ask, store_message


async def test_no_more_than_a_batch_is_answered(broker: Broker) -> None:
    for _ in range(70):
        store_message(broker, "T1", properties={"KEYS": "k"})
    for fields, count in (({"max_num": 100}, 64), ({"max_num": 32, "unique_key_query": True}, 32)):
        request = QueryMessage(topic="T1", key="k", begin_timestamp=0, end_timestamp=1 << 62, **fields)
        assert len(list(decode_records((await ask(broker, request)).body))) == count
