"""A Python member of a group until a line on standard input ends it.

    python python_member_program.py TOPIC GROUP concurrent|orderly|broadcast|pop REPORT_MS DELAY_MS

Prints what java/GroupMember.java prints, or, as one that pops, what java/PopMember.java prints. Not a test: the tests
that run it are those of mixed groups, here and in `grpc_clients/`.
"""

import asyncio
import sys
from typing import Any

from pocketmq.client.push.push_consumer import PushConsumer
from pocketmq.client.values.message import MessageExt
from pocketmq.protocol.bodies.client import ConsumeFromWhere, MessageModel


async def main() -> None:
    topic, group, mode, report_ms, delay_ms = sys.argv[1:]
    delay_seconds = int(delay_ms) / 1000
    options: dict[str, Any] = {}
    if mode == "broadcast":
        options = {
            "message_model": MessageModel.BROADCASTING,
            "instance_name": "one",
            "client_ip": "127.0.0.1",
        }
    elif mode == "pop":
        options = {"client_rebalance": False, "pop_invisible_time": 10_000}

    async def listener(message: MessageExt) -> None:
        await asyncio.sleep(delay_seconds)
        place = (message.queue_id, message.queue_offset)
        shown = (message.topic, message.body.decode(), message.reconsume_times) if mode == "pop" else place
        print("SEEN", *shown, flush=True)

    async with PushConsumer(
        group,
        listener,
        orderly=mode == "orderly",
        namesrv_addr="127.0.0.1:9876",
        subscription={topic: "*"},
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        persist_consumer_offset_interval=int(report_ms),
        await_termination_millis_when_shutdown=5000,
        **options,
    ):
        print("JOINED", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    print("LEFT", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
