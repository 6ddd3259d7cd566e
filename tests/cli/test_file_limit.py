"""The server raises its limit of file descriptors: each mapped file and each connection needs one."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource
from pocketmq.broker.process import WANTED_FILES, raise_file_limit
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
raise_file_limit()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] == (min(WANTED_FILES, hard) if hard > 0 else WANTED_FILES))
"""


def test_the_soft_limit_is_raised_as_far_as_needed_and_allowed() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
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
    ran = subprocess.run(
        [sys.executable, "-c", TABLE, str(limit)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["True", "True"]
