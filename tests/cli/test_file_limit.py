"""The server raises its limit of file descriptors: each mapped file and each connection needs one."""

import subprocess
import sys

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
