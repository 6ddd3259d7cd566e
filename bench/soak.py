"""A server under mixed traffic for a long time: is memory flat, are handles few, does every message arrive once?

    python -m bench.soak [--minutes 30] [--per-second 400]

Producers send bodies of several sizes to two topics, one group consumes them all and sends one message in a thousand
back. Once a minute it prints resident memory and open files of the server, and the latency of sends. At the end it
prints one line per figure and `soak: ok`, or what failed and exit code 1: a message lost (acknowledged and not
consumed), a message consumed twice that was not sent back, handles that grow, or memory that grows faster than
LARGEST_SLOPE_KIB_A_MINUTE after the first third.
"""

import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter
from typing import Any

from pocketmq.client import ConsumeConcurrentlyStatus, Producer, PushConsumer

from .frame import memory_bytes, parsed, served

TOPICS = ("SoakOne", "SoakTwo")
SIZES = (100, 1000, 10_000, 100_000)
WEIGHTS = (60, 30, 9, 1)
SENDERS = 16
LARGEST_SLOPE_KIB_A_MINUTE = 512
LARGEST_HANDLE_GROWTH = 20
DRAIN_SECONDS = 60
SERVER_KEYS = ("mappedFileSizeCommitLog=67108864", "flushDiskType=ASYNC_FLUSH")


class Traffic:
    """What was acknowledged and what was consumed, by key."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.sent: set[str] = set()
        self.consumed: Counter[str] = Counter()
        self.given_back: set[str] = set()
        self.failed = 0
        self.send_ms: list[float] = []
        self.ends_at = 0.0

    def take(self, message: Any) -> ConsumeConcurrentlyStatus:
        """The listener: sends one in a thousand back, once."""
        key = message.keys if isinstance(message.keys, str) else message.properties["KEYS"]
        self.consumed[key] += 1
        if int(key.rpartition("-")[2]) % 1000 == 0 and key not in self.given_back:
            self.given_back.add(key)
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async def produce(self, producer: Producer, number: int) -> None:
        chance = random.Random(number)
        pause = SENDERS / self.rate
        count = 0
        while time.monotonic() < self.ends_at:
            count += 1
            key = f"{number}-{count}"
            body = bytes(chance.choices(SIZES, WEIGHTS)[0])
            started = time.perf_counter()
            try:
                await producer.send(chance.choice(TOPICS), body, keys=key)
            except Exception as error:  # the soak continues; failures are counted and shown
                self.failed += 1
                print(f"send {key}: {error!r}", file=sys.stderr)
            else:
                self.sent.add(key)
                self.send_ms.append((time.perf_counter() - started) * 1000)
            await asyncio.sleep(pause)


def handles(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def slope(points: list[tuple[float, float]]) -> float:
    """Least squares, per unit of the first coordinate."""
    if len(points) < 2:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


async def watch(traffic: Traffic, pid: int, every_seconds: float) -> list[tuple[float, int, int]]:
    """(minutes, KiB, handles) until the traffic ends."""
    began = time.monotonic()
    samples = []
    while time.monotonic() < traffic.ends_at:
        await asyncio.sleep(every_seconds)
        minutes = (time.monotonic() - began) / 60
        samples.append((minutes, memory_bytes(pid) // 1024, handles(pid)))
        recent = sorted(traffic.send_ms[-20_000:]) or [0.0]
        print(
            f"{minutes:6.1f} min  {samples[-1][1]} KiB  {samples[-1][2]} handles  {len(traffic.sent)} sent  "
            f"{len(traffic.consumed)} consumed  p99.9 {recent[int(len(recent) * 0.999)]:.1f} ms",
            flush=True,
        )
    return samples


async def soak(namesrv: str, pid: int, minutes: float, rate: float) -> list[str]:
    """What failed; empty if nothing did."""
    traffic = Traffic(rate)
    async with Producer("SoakProducer", namesrv_addr=namesrv) as producer:
        for topic in TOPICS:
            await producer.send(topic, b"first", keys="0-0")
        traffic.sent.add("0-0")
        async with PushConsumer(
            "SoakConsumer",
            traffic.take,
            namesrv_addr=namesrv,
            subscription=dict.fromkeys(TOPICS, "*"),
            consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        ):
            traffic.ends_at = time.monotonic() + minutes * 60
            senders = [
                asyncio.create_task(traffic.produce(producer, number + 1)) for number in range(SENDERS)
            ]
            samples = await watch(traffic, pid, min(60.0, minutes * 6))
            await asyncio.gather(*senders)
            for _ in range(DRAIN_SECONDS):
                if traffic.sent <= traffic.consumed.keys():
                    break
                await asyncio.sleep(1)
    return judge(traffic, samples)


def judge(traffic: Traffic, samples: list[tuple[float, int, int]]) -> list[str]:
    settled = samples[len(samples) // 3 :]
    growth = slope([(minutes, kib) for minutes, kib, _ in settled])
    lost = traffic.sent - traffic.consumed.keys()
    twice = [
        key
        for key, count in traffic.consumed.items()
        if count > (2 if key in traffic.given_back else 1) and key != "0-0"
    ]
    ordered = sorted(traffic.send_ms) or [0.0]
    print(f"sent {len(traffic.sent)}, failed {traffic.failed}, lost {len(lost)}, twice {len(twice)}")
    print(f"send p50 {ordered[len(ordered) // 2]:.2f} ms, p99.9 {ordered[int(len(ordered) * 0.999)]:.2f} ms")
    print(f"memory {growth:+.0f} KiB a minute; handles {settled[0][2]} to {settled[-1][2]}")
    wrong = []
    if lost:
        wrong.append(f"{len(lost)} messages lost, such as {sorted(lost)[:3]}")
    if twice:
        wrong.append(f"{len(twice)} messages consumed twice, such as {sorted(twice)[:3]}")
    if traffic.failed:
        wrong.append(f"{traffic.failed} sends failed")
    if growth > LARGEST_SLOPE_KIB_A_MINUTE and len(settled) > 2:
        wrong.append(f"memory grows by {growth:.0f} KiB a minute")
    if settled[-1][2] - settled[0][2] > LARGEST_HANDLE_GROWTH:
        wrong.append(f"handles grew from {settled[0][2]} to {settled[-1][2]}")
    return wrong


def main() -> None:
    arguments = parsed(__doc__, minutes=30.0, per_second=400.0)
    with tempfile.TemporaryDirectory() as folder:
        settings = [word for key in SERVER_KEYS for word in ("--set", key)]
        with served(folder, *settings, log_level="warning") as server:
            wrong = asyncio.run(soak(server.namesrv, server.pid, arguments.minutes, arguments.per_second))
    for line in wrong:
        print(f"soak: {line}")
    if wrong:
        sys.exit(1)
    print("soak: ok")


if __name__ == "__main__":
    main()
