"""One Spark engine that stays, for jobs and programs that come and go: a session with a Spark Connect server.

    with engine("local[*]", "2g", {}, port=15002) as address:      sc://localhost:15002/;token=...
        ...

Whoever connects can run any code as the user of the engine, and every user of the machine reaches its port. So the
server asks for a token. It is in the environment of the JVM, not in its command line, which everybody can read.

The formats need no registration by those who connect: every Connect session of this package registers them. The first
job of an engine is slow like any first job, so a small read is done before it is announced.
"""

import contextlib
import os
import secrets
import socket
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pyspark.sql import SparkSession

from ..errors import OptionError
from .session import pocketmq_session

PLUGIN: Final = "org.apache.spark.sql.connect.SparkConnectPlugin"
END_SECONDS: Final = 20
TOKEN: Final = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""Where Spark's server and client look for the token."""


@contextlib.contextmanager
def engine(
    master: str | None, memory: str | None, settings: Mapping[str, str], *, port: int, show_log: bool = False
) -> Iterator[str]:
    """The address of a Spark Connect server on this machine, which ends with the `with`. `show_log`: as of a session.

    `OptionError` if the port is taken.
    """
    number = port or _free_port()
    check_port(number)
    token = os.environ.setdefault(TOKEN, secrets.token_urlsafe(32))
    own = {
        "spark.plugins": PLUGIN,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(number),
        **settings,
    }
    spark = pocketmq_session("pocketmq engine", master=master, memory=memory, settings=own, show_log=show_log)
    gateway: Any = spark.sparkContext._gateway
    try:
        spark.sparkContext.setLogLevel("INFO" if show_log else "OFF")
        warm_up(spark)
        # Only for this name Spark's client sends a token without TLS.
        yield f"sc://localhost:{number}/;token={token}"
    finally:
        _end(spark, gateway)


def warm_up(spark: SparkSession) -> None:
    """Load the classes and start the Python workers that the first job would wait for."""
    spark.range(1000).selectExpr("id % 7 as a", "cast(id as string) as b").groupBy("a").count().collect()
    spark.range(2).mapInArrow(lambda batches: batches, "id bigint").collect()


def _end(spark: SparkSession, gateway: Any) -> None:
    """Stop Spark, and its JVM: the threads of the server would keep it alive."""
    process = getattr(gateway, "proc", None)
    with contextlib.suppress(Exception):  # the JVM may have ended already
        spark.stop()
        gateway.shutdown()
    if process is None:
        return
    process.stdin.close()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def check_port(port: int) -> None:
    """`OptionError` if a program listens at this port."""
    with socket.socket() as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind(("127.0.0.1", port))
        except OSError as error:
            raise OptionError(f"--port {port}: {error.strerror}") from error


def _free_port() -> int:
    with socket.socket() as attempt:
        attempt.bind(("127.0.0.1", 0))
        return int(attempt.getsockname()[1])
