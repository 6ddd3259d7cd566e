"""Where a store is, a folder or a URL, and how that is shown. Imports little."""

import os
import re
from typing import Final

_URL: Final = re.compile(r"[A-Za-z][\w+.-]*:/.*")


def is_url(location: str) -> bool:
    return "://" in location


def absolute(text: str) -> str:
    """A path of this process's working directory as an absolute one; a URL as it is. A Spark Connect server has another
    working directory than the command."""
    return text if not text or _URL.fullmatch(text) else os.path.abspath(os.path.expanduser(text))


def shown_url(url: str) -> str:
    """A location as it may be shown: without user, keys and parameters. A folder as it is."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    place = rest.partition("?")[0].rstrip("/")
    server = place.partition("/")[0]
    has_port = server.rpartition(":")[2].isdigit()
    # A URL with an unescaped slash in its key is wrong, but it is shown in the error message.
    if "@" in server or ("@" in place and ":" in server and not has_port):
        place = place.partition("@")[2]
    return f"{scheme}{separator}{place}"
