"""Paths that mean the same in every process. Spark's may have another working directory than the command.

An engine of `pocketmq pipeline up` has that of the terminal where it was started.
"""

import os
import re
from typing import Final

_URL: Final = re.compile(r"[A-Za-z][\w+.-]*:/.*")


def absolute(text: str) -> str:
    """A path of this process's working directory as an absolute one; a URL as it is."""
    return text if not text or _URL.fullmatch(text) else os.path.abspath(os.path.expanduser(text))
