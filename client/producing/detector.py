"""Asks brokers that failed whether they answer again (`start_detector_enable`).

Which brokers are due is decided in `fault_tolerance.py`. Mirrors `LatencyFaultToleranceImpl.detectByOneRound`.
"""

import asyncio

from pocketmq.protocol.requests.offset import GetMaxOffset

from ..connections.pool import ConnectionPool
from ..errors import ClientError
from ..instance.route_book import RouteBook
from .fault_tolerance import DETECTOR_PERIOD_MS
from .sender import Sender


async def detect_brokers(sender: Sender, routes: RouteBook, connections: ConnectionPool) -> None:
    """Probe the brokers that are due, until cancelled."""
    timeout_seconds = sender.settings.detect_timeout / 1000
    while True:
        await asyncio.sleep(DETECTOR_PERIOD_MS / 1000)
        topic = next(iter(sender.published), None)
        for broker_name in sender.faults.due_for_detection() if topic else ():
            address = routes.master(broker_name, main_port=True)
            if address is None:
                sender.faults.remove(broker_name)
                continue
            request = GetMaxOffset(topic=topic or "", queue_id=0, broker_name=broker_name)
            try:
                await connections.call(address, request, timeout_seconds=timeout_seconds)
            except ClientError:
                continue
            sender.faults.note_detected(broker_name)
