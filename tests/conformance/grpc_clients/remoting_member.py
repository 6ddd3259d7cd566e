"""Our Python client for remoting, in a group that pops, until a line on standard input ends it.

    python remoting_member.py TOPIC GROUP

Prints what `java/PopMember.java` prints. Not a test: the tests that run it are in `test_mixed_groups.py`.
"""

import asyncio
import sys

from pocketmq.client.push.push_consumer import PushConsumer
from pocketmq.client.values.message import MessageExt
from pocketmq.protocol.bodies.client import ConsumeFromWhere


async def main(topic: str, group: str) -> None:
    async def listener(message: MessageExt) -> None:
        print("SEEN", message.topic, message.body.decode(), message.reconsume_times, flush=True)

    async with PushConsumer(
        group,
        listener,
        namesrv_addr="127.0.0.1:9876",
        subscription={topic: "*"},
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        client_rebalance=False,
        pop_invisible_time=10_000,
    ):
        print("JOINED", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    print("LEFT", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
