"""A producer of transactions that sends nothing, and messages that were sent in one."""

from pocketmq.client import LocalTransactionState, Producer, TransactionProducer
from pocketmq.protocol.bodies.routes import BrokerData, ClusterInfo
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.protocol.requests.name_server import GetBrokerClusterInfo

from client_network import NAMESRV, Network, answering, in_network, passed, reply
from client_waits import Seen, consuming
from waiting import until

COMMIT = LocalTransactionState.COMMIT_MESSAGE


@in_network
async def test_every_broker_learns_of_a_producer_that_has_not_sent_yet(network: Network) -> None:
    network.cluster("b0", "b1", "b2")
    brokers = {name: BrokerData("c", name, {0: f"{name}:1"}) for name in ("b0", "b1", "b2")}
    info = ClusterInfo(broker_addr_table=brokers, cluster_addr_table={"c": set(brokers)})
    network.hosts[NAMESRV] = answering({GetBrokerClusterInfo.code: lambda asked: reply(body=info.encode())})
    async with TransactionProducer("g", lambda message: COMMIT, namesrv_addr=NAMESRV):
        assert network.count(HeartBeat.code) == 3
        await passed(100)
    assert network.count(HeartBeat.code, "b2:1") >= 4, "and goes on hearing of it"


async def test_a_message_of_a_transaction_is_sent_again_as_an_ordinary_one(namesrv_addr: str) -> None:
    async with TransactionProducer("g", lambda message: COMMIT, namesrv_addr=namesrv_addr) as first:
        await first.send_in_transaction("T", b"x", lambda message, arg: COMMIT)
    seen = Seen()
    async with consuming(namesrv_addr, seen, group="reader"):
        await until(lambda: seen.messages)
        async with Producer("p", namesrv_addr=namesrv_addr) as producer:
            await producer.resend(seen.messages[0])
        await until(lambda: len(seen.messages) == 2)
    half, again = seen.messages
    assert again.message_id == half.message_id
    stored = decode_properties(bytes(again.record.properties))
    assert not {"TRAN_MSG", "MIN_OFFSET", "MAX_OFFSET"} & stored.keys()
