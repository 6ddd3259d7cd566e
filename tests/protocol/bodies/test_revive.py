"""Checkpoints and acks, as 5.5.0 stores them."""

import msgspec
from pocketmq.protocol.bodies.revive import Ack, CheckPoint


def test_bodies_are_written_as_the_official_broker_writes_them() -> None:
    # Recorded from the timer topic of 5.5.0.
    point = CheckPoint(
        start_offset=0,
        pop_time=1795248347632,
        invisible_time=6000,
        revive_time=1795248353632,
        num=3,
        topic="orders",
        group="g",
        diffs=[0, 1, 2],
        broker_name="broker-a",
    )
    assert point.encode() == (
        b'{"bm":0,"bn":"broker-a","c":"g","d":[0,1,2],"it":6000,"n":3,"pt":1795248347632,"q":0,'
        b'"reviveTime":1795248353632,"ro":0,"so":0,"sp":false,"t":"orders"}'
    )
    ack = Ack(
        start_offset=0, group="g", topic="orders", pop_time=1795248347563, queue_id=1, broker_name="broker-a"
    )
    assert ack.encode() == (b'{"ao":0,"bn":"broker-a","c":"g","pt":1795248347563,"q":1,"so":0,"t":"orders"}')
    batch = msgspec.structs.replace(ack, ack_offset=-1, ack_offsets=[1])
    assert batch.encode() == (
        b'{"ao":-1,"aol":[1],"bn":"broker-a","c":"g","pt":1795248347563,"q":1,"so":0,"t":"orders"}'
    )
