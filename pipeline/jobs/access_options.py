"""Access keys, TLS and broker addresses on a job's command line, the same as for `pocketmq admin`.

Secrets on a command line can be read in the machine's list of processes, so each may come from a variable instead.
Without an access key the keys are read from mqadmin's file `$ROCKETMQ_HOME/conf/tools.yml`, if it exists.
"""

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from pocketmq.client.errors import ClientError
from pocketmq.client.hooks.acl import keys_from_yaml

from ..errors import OptionError
from ..planning.access import Access
from .run import exit_on_user_error

_OPTIONS: Final = (
    (
        "--access-key",
        "access_key",
        "KEY",
        "Sign requests; default: the keys of $ROCKETMQ_HOME/conf/tools.yml.",
    ),
    ("--secret-key", "secret_key", "KEY", "The secret that belongs to the access key."),
    ("--security-token", "security_token", "TOKEN", "Sent with the keys."),
    (
        "--tls-trust",
        "trusted",
        "FILE",
        "With --tls: the CA certificate; default: accept any server certificate.",
    ),
    ("--tls-cert", "certificate", "FILE", "With --tls: the client certificate."),
    ("--tls-key", "key", "FILE", "With --tls: the key of the client certificate."),
    ("--tls-key-password", "password", "TEXT", "What that key is locked with."),
    (
        "--broker-address-map",
        "address_map",
        "A=B[;A=B]",
        "Reach the broker whose route says A at B, each host:port.",
    ),
)
VARIABLES: Final = {
    "--access-key": "POCKETMQ_ACCESS_KEY",
    "--secret-key": "POCKETMQ_SECRET_KEY",
    "--security-token": "POCKETMQ_SECURITY_TOKEN",
    "--tls-key-password": "POCKETMQ_TLS_KEY_PASSWORD",
}
"""Variable of the environment that is read if the option is not given."""


def access_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a job that connects to brokers, gathered into one parameter, `access`."""

    @functools.wraps(command)
    def gathered(**options: Any) -> Any:
        given = {field: options.pop(field) for field in Access.__struct_fields__}
        access = Access(**{field: value for field, value in given.items() if value != ""})
        with exit_on_user_error():
            access = with_keys_of_file(access, os.environ)
        return command(**options, access=access)

    decorated: Callable[..., Any] = gathered
    for name, field, metavar, words in reversed(_OPTIONS):
        variable = VARIABLES.get(name)
        decorated = click.option(
            name, field, metavar=metavar, help=words, envvar=variable, show_envvar=variable is not None
        )(decorated)
    return click.option("--tls", "uses_tls", is_flag=True, help="Encrypt connections.")(decorated)


def with_keys_of_file(access: Access, environ: Mapping[str, str]) -> Access:
    """The same access, with the keys of `tools.yml` if it has none.

    `OptionError` for one key without the other, certificates without TLS, and files that cannot be read.
    """
    if bool(access.access_key) != bool(access.secret_key):
        raise OptionError("--access-key, --secret-key: set both or none")
    if not access.uses_tls and (access.trusted or access.certificate or access.key):
        raise OptionError("--tls is required with --tls-trust, --tls-cert and --tls-key")
    access.addresses()
    try:
        access.tls()
    except OptionError as error:
        raise OptionError(f"--tls-trust, --tls-cert, --tls-key: {error.__cause__}") from error
    home = environ.get("ROCKETMQ_HOME")
    file = Path(home or ".", "conf", "tools.yml")
    if access.access_key or home is None or not file.is_file():
        return access
    try:
        access_key, secret_key, token = keys_from_yaml(file)
    except ClientError as error:
        raise OptionError(str(error)) from error
    return msgspec.structs.replace(access, access_key=access_key, secret_key=secret_key, security_token=token)
