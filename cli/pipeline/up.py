"""`pocketmq pipeline up`: one Spark engine that stays, until a signal.

Jobs on Spark use it unless they name a master, memory or settings, and start in the time that Python needs. Programs of
your own connect to the printed address, which has the token of this engine: `SparkSession.builder.remote(address)`.
"""

import threading
from contextlib import ExitStack
from importlib.util import find_spec

import click

NEEDED = ("grpc", "grpc_status", "pandas")
"""What Spark's own client of Spark Connect imports."""


@click.command()
@click.option("--master", help="Where Spark runs.  [default: local[*]]")
@click.option("--memory", default="1g", show_default=True, help="Memory of the engine.")
@click.option("--conf", "settings", metavar="K=V", multiple=True, help="A setting of Spark; may be repeated.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=15002, show_default=True, help="0: a free one."
)
@click.option("--verbose", "is_verbose", is_flag=True, help="Print Spark's log, and errors with their stack.")
def main(*, master: str | None, memory: str, settings: tuple[str, ...], port: int, is_verbose: bool) -> None:
    """Keep one Spark engine running, so that jobs start at once."""
    from pocketmq.pipeline.errors import PipelineError
    from pocketmq.pipeline.jobs.run import (
        SessionChoice,
        check_dependencies,
        ended_by_signals,
        exit_on_user_error,
        read_settings,
        user_error_if_spark_does_not_start,
    )

    with exit_on_user_error(is_verbose=is_verbose):
        check_dependencies()
        if not all(find_spec(name) for name in NEEDED):
            raise PipelineError("pipeline up needs its extra: pip install 'pocketmq[connect]'")
        own = read_settings(settings)
        choice = SessionChoice(master, memory, own, is_verbose)
        choice.check()
        from pocketmq.pipeline.session.engine import check_port, engine
        from pocketmq.pipeline.session.running_engine import announce, running_engine, withdraw

        other = running_engine()
        if other is not None:
            raise PipelineError(f"an engine is running already, at {other}")
        if port:
            check_port(port)
        ended = threading.Event()
        with ended_by_signals(ended), ExitStack() as stack:
            running = engine(master or "local[*]", memory, own, port=port, show_log=is_verbose)
            with user_error_if_spark_does_not_start(choice):
                address = stack.enter_context(running)
            stack.enter_context(ended_by_signals(ended))  # Spark has set a handler of its own
            announce(address)
            stack.callback(withdraw)
            click.echo(f"SPARK_REMOTE={address}")
            while not ended.wait(1.0):
                pass


if __name__ == "__main__":
    main()
