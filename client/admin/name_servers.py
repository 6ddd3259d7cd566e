"""Name servers: their settings and key-value settings, write permission of brokers, order configurations of topics.

Reading asks one name server, the next if it does not answer; a change goes to all of them, as in Java. Part of
`AdminClient` (`client.py`). Each docstring names the official method.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pocketmq.protocol.requests.name_server import (
    AddWritePermOfBroker,
    DeleteKvConfig,
    GetKvConfig,
    GetKvListByNamespace,
    GetNamesrvConfig,
    PutKvConfig,
    UpdateNamesrvConfig,
    WipeWritePermOfBroker,
)
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import InvalidArgument, RequestRefused
from .calls import AdminCalls, parse_settings, settings_text

ORDER_NAMESPACE: Final = "ORDER_TOPIC_CONFIG"
"""Where name servers keep the order configurations."""


class AdminNameServers(AdminCalls):
    """Everything only name servers know."""

    async def namesrv_config(self, servers: Sequence[str] | None = None) -> dict[str, dict[str, str]]:
        """The settings of each name server, by its address (getNameServerConfig)."""
        return {
            server: parse_settings(await self._call(server, GetNamesrvConfig()))
            for server in servers or self.name_servers
        }

    async def update_namesrv_config(
        self, settings: Mapping[str, str], servers: Sequence[str] | None = None
    ) -> list[str]:
        """Change settings of every name server; the servers that did (updateNameServerConfig)."""
        targets = list(servers or self.name_servers)
        for server in targets:
            await self._call(server, UpdateNamesrvConfig(), settings_text(settings))
        return targets

    async def put_kv_config(self, namespace: str, key: str, value: str) -> None:
        """Set a key at every name server (createAndUpdateKvConfig)."""
        await self._call_name_servers(PutKvConfig(namespace=namespace, key=key, value=value))

    async def kv_config(self, namespace: str, key: str) -> str:
        """A key's value (getKVConfig); `RequestRefused` 22 if the key does not exist."""
        return (await self._ask(GetKvConfig(namespace=namespace, key=key))).value or ""

    async def kv_configs(self, namespace: str) -> dict[str, str]:
        """All keys of a namespace (getKVListByNamespace); `RequestRefused` 22 if it has none."""
        return dict(sorted((await self._ask(GetKvListByNamespace(namespace=namespace))).table.items()))

    async def delete_kv_config(self, namespace: str, key: str) -> None:
        """Delete a key at every name server, whether it exists or not (deleteKvConfig)."""
        await self._call_name_servers(DeleteKvConfig(namespace=namespace, key=key))

    async def wipe_write_perm(self, broker_name: str) -> dict[str, int]:
        """Remove a broker from all routes for writing; topics changed, by name server (wipeWritePermOfBroker)."""
        request = WipeWritePermOfBroker(broker_name=broker_name)
        return {server: (await self._call(server, request)).wipe_topic_count for server in self.name_servers}

    async def add_write_perm(self, broker_name: str) -> dict[str, int]:
        """Undo `wipe_write_perm` (addWritePermOfBroker)."""
        request = AddWritePermOfBroker(broker_name=broker_name)
        return {server: (await self._call(server, request)).add_topic_count for server in self.name_servers}

    # -- order configurations of topics

    async def order_conf(self, topic: str) -> str:
        """The order configuration of a topic, `broker-a:4;broker-b:4`; `RequestRefused` 22 if it has none."""
        return await self.kv_config(ORDER_NAMESPACE, topic)

    async def set_order_conf(self, topic: str, order_conf: str) -> None:
        """Replace the order configuration at every name server (createOrUpdateOrderConf, cluster)."""
        if not order_conf.strip():
            raise InvalidArgument("order_conf must not be empty: expected broker-a:4;broker-b:4")
        await self.put_kv_config(ORDER_NAMESPACE, topic, order_conf)

    async def update_order_conf(self, topic: str, order_conf: str) -> str:
        """Set the queue number of one broker, `broker-a:4`, and keep those of others; the result
        (createOrUpdateOrderConf, broker)."""
        try:
            present = await self.order_conf(topic)
        except RequestRefused as refusal:
            if refusal.code != ResponseCode.QUERY_NOT_FOUND:
                raise
            present = ""
        merged = _order_numbers(present) | _order_numbers(order_conf)
        text = ";".join(f"{broker}:{count}" for broker, count in sorted(merged.items()))
        await self.set_order_conf(topic, text)
        return text

    async def delete_order_conf(self, topic: str) -> None:
        """Delete the order configuration, whether it exists or not (deleteKvConfig)."""
        await self.delete_kv_config(ORDER_NAMESPACE, topic)


def order_conf_of(brokers: Mapping[str, int]) -> str:
    """Broker names with their queue numbers as an order configuration."""
    return ";".join(f"{name}:{count}" for name, count in brokers.items())


def _order_numbers(order_conf: str) -> dict[str, str]:
    return {
        broker: count
        for broker, colon, count in (part.partition(":") for part in order_conf.split(";"))
        if broker and colon
    }
