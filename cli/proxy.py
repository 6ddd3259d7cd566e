"""`pocketmq proxy`: a TCP proxy in front of any server, with a bad network between.

    pocketmq proxy --listen 9877 --target 127.0.0.1:9876 --latency 0.2

The options are those of `rocketmq.faults.network`; the proxy itself is `pocketmq.testing.faults.tcp_proxy`.
"""

import asyncio
from typing import TYPE_CHECKING, Final

import click

from .mistakes import refuse
from .server_options import log_to_stderr

if TYPE_CHECKING:
    from pocketmq.testing.faults.shaping import Shape

LOOPBACK: Final = "127.0.0.1"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--listen", metavar="[HOST:]PORT", required=True, help="Where clients connect; 0 for a free port."
)
@click.option("--target", metavar="HOST:PORT", required=True, help="The server behind.")
@click.option("--latency", type=float, metavar="SECONDS", help="Hold back each answer so long.")
@click.option("--bandwidth", type=int, metavar="BYTES", help="So many bytes a second, in each direction.")
@click.option("--slice-bytes", type=int, metavar="BYTES", help="So many bytes a write, in each direction.")
@click.option("--half-open", is_flag=True, help="Accept connections and lose every byte.")
def proxy(
    *,
    listen: str,
    target: str,
    latency: float | None,
    bandwidth: int | None,
    slice_bytes: int | None,
    half_open: bool,
) -> None:
    """Stand between clients and a server, with a slow or broken network.

    Once clients can connect, PROXY_ADDR=host:port is written to standard output; logs go to standard error. SIGTERM and
    SIGINT stop the proxy cleanly. Clients learn a broker's address from its route: a proxy in front of a broker needs
    that address (brokerIP1 and listenPort of the broker), one in front of a name server does not.
    """
    from pocketmq.broker.errors import StartError
    from pocketmq.broker.process import loop_factory
    from pocketmq.testing.errors import WrongValueError
    from pocketmq.testing.faults.shaping import shape_of

    log_to_stderr("info")
    try:
        host, port = _listen_address(listen)
        shape = shape_of(latency, bandwidth, slice_bytes, half_open)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve(target, host, port, shape))
    except WrongValueError as error:
        refuse(f"--{error}".replace("_", "-", 1), program="pocketmq proxy")
    except ValueError as error:
        refuse(f"--target: {error}", program="pocketmq proxy")
    except StartError as error:
        refuse(error, program="pocketmq proxy")


def _listen_address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise click.UsageError(f"--listen must be PORT or HOST:PORT, got {listen!r}")
    return host.strip("[]") or LOOPBACK, int(port)


async def _serve(target: str, host: str, port: int, shape: "Shape") -> None:
    from pocketmq.broker.process import on_signals
    from pocketmq.testing.faults.tcp_proxy import TcpProxy

    stop_requested = asyncio.Event()
    on_signals(stop_requested.set)
    async with TcpProxy(target, host=host, port=port, shape=shape) as running:
        print(f"PROXY_ADDR={running.address}", flush=True)
        await stop_requested.wait()
