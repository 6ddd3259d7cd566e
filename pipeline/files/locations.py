"""Where a store is, a folder or a URL, and how that is shown. Imports nothing."""


def is_url(location: str) -> bool:
    return "://" in location


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
