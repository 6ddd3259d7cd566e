"""`pocketmq serve`: its options, the settings they change, and its error messages.

An option with the meaning of a key sets that key after all others: `--port 10911` is `--set listenPort=10911`. The
server is imported only when it starts, so that `--help` and `--print-config` are quick.
"""

import gc
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from pocketmq.broker.errors import StartError
from pocketmq.store import StoreError
from pocketmq.testing.errors import TestingError
from pocketmq.testing.server.parent import ending_with_parent

from .mistakes import FAILED, refuse
from .server_options import ServerOptions, server_options

if TYPE_CHECKING:
    from pocketmq.broker.config.broker_config import BrokerConfig
    from pocketmq.broker.config.name_server_config import NameServerConfig
    from pocketmq.broker.node import Node
    from pocketmq.broker.process import Companion
    from pocketmq.broker.time.timers import OwnTime
    from pocketmq.testing.state.load import LoadSource

_log = logging.getLogger("pocketmq.serve")

_PORT: Final = click.IntRange(0, 65535)
_ROW: Final = "{:<46} {:<24} {:<24} {:<12} {}"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@server_options(log_level="info")
@click.option("--namesrv-conf", metavar="FILE", help="A namesrv.conf, for the name server in this process.")
@click.option("--store", metavar="DIR", help="Directory of the store.  [default: pocketmq-store]")
@click.option(
    "--ephemeral", is_flag=True, help="A temporary store, removed at exit; ends with its parent process."
)
@click.option("--host", metavar="ADDRESS", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=_PORT, help="Port of the broker, 0 for a free one.  [default: 10911]")
@click.option(
    "--namesrv-port", type=_PORT, help="Port of the name server, 0 for a free one.  [default: 9876]"
)
@click.option("--no-namesrv", is_flag=True, help="No name server in this process: register elsewhere.")
@click.option("--namesrv", metavar="ADDR[;ADDR]", help="Name servers to register at besides our own.")
@click.option(
    "--advertise", metavar="HOST:PORT", help="Address that routes name, if it is not the bound one."
)
@click.option(
    "--print-config", is_flag=True, help="Show every key with value, default and verdict, and exit."
)
def serve(
    *,
    given: ServerOptions,
    namesrv_conf: str | None,
    store: str | None,
    ephemeral: bool,
    host: str | None,
    port: int | None,
    namesrv_port: int | None,
    no_namesrv: bool,
    namesrv: str | None,
    advertise: str | None,
    print_config: bool,
) -> None:
    """Serve RocketMQ: a broker and its name server in one process.

    Once clients can connect, NAMESRV_ADDR=host:port is written to standard output; logs go to standard error. SIGTERM,
    SIGINT and SIGHUP stop the server cleanly. Exit code 1: the store could not be closed; the next start recovers it.
    """
    gc.disable()  # a start makes many objects and no garbage; `run` enables it once clients can connect
    try:
        with _store_dir(store, ephemeral=ephemeral) as store_dir:
            options = (
                ("storePathRootDir", store_dir, "--store"),
                ("bindAddress", host, "--host"),
                ("listenPort", port, "--port"),
                ("namesrvAddr", namesrv, "--namesrv"),
                ("emulate", given.emulate, "--emulate"),
                ("advertise", advertise, "--advertise"),
                ("grpcServerPort", given.grpc_port, "--grpc-port"),
            )
            broker = _broker_config(given.conf_file, given.sets, options, no_namesrv=no_namesrv)
            own = not no_namesrv
            name_server = _name_server_config(broker, namesrv_conf, given.sets, namesrv_port) if own else None
            if print_config:
                click.echo(listing(broker, name_server), nl=False)
                return
            given.check_admin_port(broker)
            broker.store.is_temporary = ephemeral
            from pocketmq.broker.process import run

            beside = _beside(broker, given)
            _log.info("store: %s", broker.store.root.absolute())
            journal_folder = None if given.journal is None else Path(given.journal)
            time = virtual_node_time() if given.virtual_time else None
            stopped_cleanly = run(broker, name_server, journal_folder, given.ports_file, beside, time=time)
            if not stopped_cleanly:
                sys.exit(FAILED)
    except (StartError, StoreError, TestingError) as error:
        refuse(error)
    finally:
        gc.enable()


def virtual_node_time() -> "OwnTime":
    """Time that stands still until the HTTP port moves it."""
    from pocketmq.testing.time.virtual_time import NodeTime

    return NodeTime()


def _beside(broker: "BrokerConfig", given: ServerOptions) -> "list[Companion]":
    beside = [*loading(given.loads), *(ending_with_parent() if broker.store.is_temporary else ())]
    if given.admin_port is not None:
        from pocketmq.testing.server.admin_port import admin_port_beside

        beside.append(admin_port_beside(broker.bind_address, given.admin_port, given.admin_host_names))
    if broker.endpoint.grpc_server_port is not None:
        from pocketmq.grpc_endpoint.endpoint import endpoint_beside

        beside.append(endpoint_beside)
    return beside


def loading(sources: "Sequence[LoadSource]") -> "list[Companion]":
    """Brings them to the node before it says that it is ready; empty without any. Raises `LoadError` at once for a bad
    file."""
    if not sources:
        return []
    from pocketmq.testing.state.load import apply_load, read_load

    loads = [read_load(source) for source in sources]

    @asynccontextmanager
    async def load(node: "Node") -> AsyncIterator[Mapping[str, str]]:
        for one in loads:
            await apply_load(node, one)
        yield {}

    return [load]


@contextmanager
def _store_dir(store: str | None, *, ephemeral: bool) -> Iterator[str | None]:
    """The directory of the store, if the options name one; a temporary directory is deleted at the end."""
    if not ephemeral:
        yield store
        return
    if store is not None:
        raise StartError("--ephemeral and --store exclude each other")
    from pocketmq.testing.server.after_death import remove_after_death

    try:
        folder = tempfile.mkdtemp(prefix="pocketmq-")
    except OSError as error:
        raise StartError(f"cannot create a temporary store: {error}") from error
    remove_after_death(Path(folder))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _broker_config(
    conf_file: str | None,
    sets: Sequence[str],
    options: Sequence[tuple[str, str | int | None, str]],
    *,
    no_namesrv: bool,
) -> "BrokerConfig":
    """The broker's settings: options win over --set, --set over the file, the file over the environment. An option is a
    key, its value, and what the option is called."""
    from pocketmq.broker.config.loading import Setting, load_broker

    settings = [Setting(key, str(value), option) for key, value, option in options if value is not None]
    config = load_broker(conf_file, sets, settings)
    if no_namesrv and not config.namesrv_addr:
        config.namesrv_addr = os.environ.get("NAMESRV_ADDR", "")
        if not config.namesrv_addr:
            raise StartError(
                "--no-namesrv leaves no name server to register at: give --namesrv or NAMESRV_ADDR"
            )
    return config


def _name_server_config(
    broker: "BrokerConfig", conf_file: str | None, sets: Sequence[str], port: int | None
) -> "NameServerConfig":
    """The name server's settings. Its files are in the directory of the store, unless the settings name other paths."""
    from pocketmq.broker.config.loading import load_name_server

    config = load_name_server(conf_file, sets, broker_conf_file=broker.conf_file)
    if port is not None:
        config.listen_port = port
    config.kv_config_path = config.kv_config_path or str(broker.store.root / "namesrv" / "kvConfig.json")
    config.config_store_path = conf_file or config.config_store_path
    return config


def listing(broker: "BrokerConfig", name_server: "NameServerConfig | None") -> str:
    """All known keys with value, official default, verdict, and their effect or why they have none."""
    from pocketmq.broker.config import keys as config_keys

    lines = [_ROW.format("key", "value", "official default", "verdict", "what it does, or why nothing")]
    for config, program in ((broker, "broker"), (name_server, "name server")):
        if config is None:
            continue
        lines.append(f"# {program}")
        for key in config_keys.keys("broker" if config is broker else "namesrv").values():
            value = config_keys.without_secret(
                key, config_keys.displayed_value(config, key, is_5=broker.is_5)
            )
            default = key.default_of(is_5=broker.is_5)
            cells = ("-" if cell is None else cell or '""' for cell in (value, default))
            lines.append(_ROW.format(key.name, *cells, key.verdict, key.reason))
    return "".join(line + "\n" for line in lines)
