"""The addresses of the brokers of all known routes: broker name to addresses by broker id, 0 is the master.

Mirrors `brokerAddrTable` of `MQClientInstance`.
"""

import logging
from collections.abc import Iterable, Mapping

from ..connections.route import MASTER_ID

_log = logging.getLogger(__name__)


class BrokerAddresses:
    """Filled from routes by `RouteBook`."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[int, str]] = {}

    def keep(self, addresses: Mapping[str, Mapping[int, str]]) -> None:
        """Remember the addresses of a route."""
        for broker_name, by_id in addresses.items():
            self._by_name[broker_name] = dict(by_id)

    def keep_only(self, named: Iterable[Mapping[str, Mapping[int, str]]]) -> None:
        """Forget addresses that none of these names any more (official cleanOfflineBroker)."""
        alive = {address for brokers in named for by_id in brokers.values() for address in by_id.values()}
        for broker_name, by_id in list(self._by_name.items()):
            kept = {broker_id: address for broker_id, address in by_id.items() if address in alive}
            for address in by_id.values():
                if address not in alive:
                    _log.info("the broker %s at %s is offline", broker_name, address)
            if kept:
                self._by_name[broker_name] = kept
            else:
                del self._by_name[broker_name]

    def all_addresses(self) -> set[str]:
        """Masters and slaves."""
        return {address for by_id in self._by_name.values() for address in by_id.values()}

    def heartbeat_targets(self, *, with_slaves: bool) -> list[str]:
        """The brokers that get heartbeats: masters, and slaves if a consumer may read from them."""
        return list(
            dict.fromkeys(
                address
                for by_id in self._by_name.values()
                for broker_id, address in by_id.items()
                if with_slaves or broker_id == MASTER_ID
            )
        )

    def of(self, broker_name: str) -> Mapping[int, str]:
        """By broker id; empty for an unknown broker."""
        return self._by_name.get(broker_name, {})

    def master(self, broker_name: str) -> str | None:
        """The address of a broker's master."""
        by_id = self._by_name.get(broker_name)
        return None if by_id is None else by_id.get(MASTER_ID)

    def reader(self, broker_name: str, broker_id: int) -> tuple[str, bool] | None:
        """Address to read from and whether it is a slave: the given id, for a slave the next one, else any
        (official findBrokerAddressInSubscribe)."""
        by_id = self._by_name.get(broker_name)
        if not by_id:
            return None
        for wanted in (broker_id, *((broker_id + 1,) if broker_id != MASTER_ID else ())):
            if wanted in by_id:
                return by_id[wanted], wanted != MASTER_ID
        found_id, address = next(iter(by_id.items()))
        return address, found_id != MASTER_ID
