"""The address server: an HTTP page with the addresses of the name servers, read again every two minutes.

    http://DOMAIN:8080/rocketmq/nsaddr          namesrv_domain, namesrv_domain_subgroup; a port may follow the domain
    http://DOMAIN:8080/rocketmq/nsaddr-UNIT?nofix=1       with unit_name

    10.0.0.1:9876;10.0.0.2:9876                   the page: its first line counts

Asked if neither `namesrv_addr` nor NAMESRV_ADDR names a server, and only with a domain: there is no built-in one.
Mirrors `DefaultTopAddressing` and `MixAll.getWSAddr`.
"""

import asyncio
from typing import Final

from ..errors import InvalidSetting, NotReachable
from ..settings.client_settings import ClientSettings, name_servers

FETCH_SECONDS: Final = 3.0
FIRST_REFRESH_SECONDS: Final = 10.0
REFRESH_MS: Final = 120_000
MAX_PAGE_BYTES: Final = 64 * 1024


def address_server_url(settings: ClientSettings) -> str | None:
    """The page of these settings; None without a domain."""
    domain = settings.namesrv_domain
    if not domain:
        return None
    host = domain if ":" in domain else f"{domain}:8080"
    unit = f"-{settings.unit_name}?nofix=1" if settings.unit_name and settings.unit_name.strip() else ""
    return f"http://{host}/rocketmq/{settings.namesrv_domain_subgroup}{unit}"


async def fetch_name_servers(url: str) -> list[str]:
    """The addresses the page names, at least one. `NotReachable` if it cannot be read or names none.

    Cancelling stops waiting; the request ends by itself within its timeout.
    """
    from http.client import HTTPException  # few clients ask, and the module takes its time to import

    try:
        page = await asyncio.to_thread(_get, url)
        lines = page.decode("utf-8").split()
        servers = name_servers(lines[0], {}) if lines else []
    except (OSError, ValueError, HTTPException, InvalidSetting) as error:
        raise NotReachable(f"the address server {url}: {error}") from error
    if not servers:
        raise NotReachable(f"the address server {url} names no name server")
    return servers


def _get(url: str) -> bytes:
    import urllib.error
    import urllib.request

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=FETCH_SECONDS) as answer:
            page: bytes = answer.read(MAX_PAGE_BYTES)
            return page
    except urllib.error.HTTPError as error:
        error.close()  # it holds the answer
        raise
