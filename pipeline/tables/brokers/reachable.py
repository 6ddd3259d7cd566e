"""Whether name servers, topics and their brokers can be reached: asked before a job starts an engine. And all brokers.

An engine needs seconds to start, and reports in its own words what does not answer.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from pocketmq.client.access import Access
from pocketmq.client.errors import RouteNotFound
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC

from ...errors import PipelineError, TopicMissing
from ..planning.spelling import did_you_mean
from .broker_client import BrokerClient

if TYPE_CHECKING:
    from pocketmq.client.admin.client import AdminClient

ANSWER_MS: Final = 30_000
"""How long a job waits for an answer before it has read anything."""
LIST_MS: Final = 3_000


def check_reachable(
    namesrv_addr: str, topics: Iterable[str], access: Access, *, answer_ms: int = ANSWER_MS
) -> None:
    """`SourceUnreachable` if a name server or a broker of the topics does not answer, `TopicMissing` for a topic that
    no broker has. Without topics only the name server is asked."""
    names = sorted({name.strip() for name in topics if name.strip()})
    with BrokerClient(namesrv_addr, access).closing() as client:
        if not names:
            answer = client.with_retries(
                "route", lambda _: _answered(client), answer_ms, said_as=client.name_server
            )
            client.run(answer)
            return
        try:
            found = client.queues_of(names, answer_ms)
        except TopicMissing as error:
            raise TopicMissing(error.option, f"{error.problem}{suggestion(client, names)}") from error
        client.bounds([queue for queues in found.values() for queue in queues or ()], answer_ms)


def suggestion(client: BrokerClient, names: Iterable[str]) -> str:
    """The existing topic that a misspelt one is like, as the end of a sentence; empty if there is none."""
    try:
        existing = client.topics(LIST_MS)
    except PipelineError:
        return ""
    missing = [name for name in names if name not in existing]
    return did_you_mean(missing[0], existing) if missing else ""


def admin_client(namesrv_addr: str, access: Access, **settings: Any) -> "AdminClient":
    """A client for the whole cluster, with the keys and TLS of this access."""
    from pocketmq.client.admin.client import AdminClient

    tls = access.tls_settings() if access.uses_tls else {}
    return AdminClient(namesrv_addr=namesrv_addr, hooks=access.hooks(), **tls, **settings)


async def master_addresses(admin: "AdminClient", access: Access) -> list[str]:
    """The addresses of all masters, as this process reaches them."""
    clusters = (await admin.cluster_info()).cluster_addr_table or {}
    return [access.reachable(address) for one in clusters for address in await admin.master_addresses(one)]


async def _answered(client: BrokerClient) -> None:
    try:
        await client.route(AUTO_CREATE_TOPIC, fresh=True)
    except RouteNotFound:
        pass  # a name server answered, and that was the question
