"""Keys, TLS and broker addresses on a command line: the same options for every command that connects to a cluster.

Secrets on a command line can be read in the machine's list of processes, so each may come from a variable of the
environment instead. Not imported by a client: only commands need it.
"""

import functools
import os
from collections.abc import Callable
from typing import IO, Any, Final

import click

from .access import Access
from .errors import ClientError

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
_NAMES: Final = {"uses_tls": "--tls"} | {field: name for name, field, _, _ in _OPTIONS}
_VARIABLES: Final = {
    "--access-key": "POCKETMQ_ACCESS_KEY",
    "--secret-key": "POCKETMQ_SECRET_KEY",
    "--security-token": "POCKETMQ_SECURITY_TOKEN",
    "--tls-key-password": "POCKETMQ_TLS_KEY_PASSWORD",
}
"""Variable of the environment that is read if the option is not given."""


class _WrongOptions(click.ClickException):
    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"pocketmq: {self.format_message()}", file=file, err=True)


def access_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that connects to brokers, gathered into one parameter, `access`."""

    @functools.wraps(command)
    def gathered(**options: Any) -> Any:
        given = {field: options.pop(field) for field in Access.__struct_fields__}
        access = Access(**{field: value for field, value in given.items() if value != ""})
        return command(**options, access=_checked(access))

    decorated: Callable[..., Any] = gathered
    for name, field, metavar, words in reversed(_OPTIONS):
        variable = _VARIABLES.get(name)
        decorated = click.option(
            name, field, metavar=metavar, help=words, envvar=variable, show_envvar=variable is not None
        )(decorated)
    return click.option("--tls", "uses_tls", is_flag=True, help="Encrypt connections.")(decorated)


def _checked(access: Access) -> Access:
    """With the keys of mqadmin's file if it has none. A mistake is one line and exit code 2."""
    try:
        access.check(_NAMES)
        try:
            access.tls()
        except ClientError as error:
            raise _WrongOptions(f"--tls-trust, --tls-cert, --tls-key: {error}") from error
        return access.with_keys_of_file(os.environ)
    except ClientError as error:
        raise _WrongOptions(str(error)) from error
