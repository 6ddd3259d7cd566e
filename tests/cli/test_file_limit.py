"""The server raises its limit of file descriptors: each mapped file and each connection needs one."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pocketmq.client import Producer

from processes import python
from waiting import wait_until

PROGRAM = """
import resource
from pocketmq.broker.process import WANTED_FILES, raise_file_limit
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
raise_file_limit()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] == (min(WANTED_FILES, hard) if hard > 0 else WANTED_FILES))
"""


def test_the_soft_limit_is_raised_as_far_as_needed_and_allowed() -> None:
    ran = python("-c", PROGRAM)
    assert ran.stdout.strip() == "True"


TABLE = """
import os, resource, sys
from pocketmq.broker.process import WANTED_TABLE, grow_descriptor_table
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
limit = int(sys.argv[1]) or soft
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
before = sorted(os.listdir("/proc/self/fd"))
grow_descriptor_table()
[size] = [line for line in open("/proc/self/status") if line.startswith("FDSize")]
print(int(size.split()[1]) >= min(WANTED_TABLE, limit), sorted(os.listdir("/proc/self/fd")) == before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the size of the table on Linux only")
@pytest.mark.parametrize("limit", [0, 1024])
def test_the_table_of_descriptors_has_room_and_no_descriptor_stays_open(limit: int) -> None:
    """A table that grows later stops every thread for milliseconds."""
    assert python("-c", TABLE, str(limit)).stdout.split() == ["True", "True"]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells which descriptors are open on Linux only")
def test_connections_leave_descriptors_for_the_store(tmp_path: Path) -> None:
    """Idle ones took the last, and sends were refused as if the disk were full."""
    limit, idle = 256, list[socket.socket]()
    command = f"ulimit -n {limit}; exec {sys.executable} -m pocketmq.cli serve --port 0 --namesrv-port 0"
    process = subprocess.Popen(
        ["/bin/sh", "-c", command], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        namesrv = process.stdout.readline().strip().removeprefix("NAMESRV_ADDR=")
        host, _, port = namesrv.partition(":")
        asyncio.run(send_to_a_new_topic(namesrv, "before"))
        for _ in range(limit):
            idle.append(socket.create_connection((host, int(port)), timeout=5))
        idle[-1].settimeout(5)
        assert idle[-1].recv(1) == b""  # refused
        for peer in idle[limit // 4 :]:
            peer.close()
        descriptors = Path(f"/proc/{process.pid}/fd")
        wait_until(
            lambda: len(list(descriptors.iterdir())) < limit // 2 - 10, "the server has closed them too"
        )
        for number in range(10):
            asyncio.run(send_to_a_new_topic(namesrv, f"topic-{number}"))
    finally:
        for peer in idle:
            peer.close()
        process.terminate()
        _, errors = process.communicate(timeout=20)
    assert errors.count("file descriptors are in use") == 1


async def send_to_a_new_topic(namesrv: str, topic: str) -> None:
    async with Producer("p", namesrv_addr=namesrv) as producer:
        assert (await producer.send(topic, b"x")).status.name == "SEND_OK"
