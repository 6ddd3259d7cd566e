"""A Python member of a group until a line on standard input ends it; prints what java/GroupMember.java prints.

    python python_member_program.py TOPIC GROUP concurrent|orderly|broadcast REPORT_MS DELAY_MS

Not a test: the tests that run it are `test_mixed_groups.py`.
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

    async def listener(message: MessageExt) -> None:
        await asyncio.sleep(delay_seconds)
        print(f"SEEN {message.queue_id} {message.queue_offset}", flush=True)

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
