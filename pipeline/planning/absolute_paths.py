"""Paths that mean the same in every process: a Spark Connect server has another working directory than the command."""

import os
import re
from typing import Final

_URL: Final = re.compile(r"[A-Za-z][\w+.-]*:/.*")


def absolute(text: str) -> str:
    """A path of this process's working directory as an absolute one; a URL as it is."""
    return text if not text or _URL.fullmatch(text) else os.path.abspath(os.path.expanduser(text))
