"""The options of a source or sink that sign its requests, encrypt its connections, and say where it finds brokers.

Every machine that runs tasks needs the files that they name. The value they make is `pocketmq.client.access.Access`.
"""

from typing import Any, Final

from pocketmq.client.access import Access
from pocketmq.client.errors import InvalidArgument

from ...errors import OptionError
from .option_values import OptionValues

_TLS: Final = "uses_tls"
_OF_FIELD: Final = {
    "access_key": "rocketmq.accessKey",
    "secret_key": "rocketmq.secretKey",
    "security_token": "rocketmq.securityToken",
    _TLS: "rocketmq.tls.enable",
    "trusted": "rocketmq.tls.client.trustCertPath",
    "certificate": "rocketmq.tls.client.certPath",
    "key": "rocketmq.tls.client.keyPath",
    "password": "rocketmq.tls.client.keyPassword",
    "address_map": "rocketmq.broker.address.map",
}
"""Each field of `Access`, and its option."""
ACCESS_NAMES: Final = tuple(_OF_FIELD.values())


def read_access(values: OptionValues) -> Access:
    """`OptionError` for one key without the other, or certificates without TLS."""
    fields: dict[str, Any] = {field: values.text(name) for field, name in _OF_FIELD.items() if field != _TLS}
    access = Access(**fields, uses_tls=values.flag(_OF_FIELD[_TLS], False))
    try:
        access.check(_OF_FIELD)
    except InvalidArgument as error:
        raise OptionError("option", str(error)) from error
    return access


def source_options(access: Access) -> dict[str, str]:
    """The options of source and sink for this access."""
    values = {name: getattr(access, field) for field, name in _OF_FIELD.items()}
    values[_OF_FIELD[_TLS]] = "true" if access.uses_tls else None
    return {name: value for name, value in values.items() if value is not None}
