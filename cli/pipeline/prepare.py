"""`pocketmq pipeline prepare`: takes half a minute once, and every later session starts some seconds sooner.

It starts a broker for the rehearsal; the rest is `pocketmq.pipeline.spark.session.prepare`.
"""

import click


@click.command()
def main() -> None:
    """Make later sessions start sooner: keep the classes that a JVM loads for Spark."""
    from pocketmq.pipeline.jobs.answers.run import check_dependencies, exit_on_user_error

    with exit_on_user_error():
        check_dependencies()
        from pocketmq.pipeline.spark.session.java import find_java
        from pocketmq.pipeline.spark.session.prepare import make_archive
        from pocketmq.testing import EmbeddedServer

        with EmbeddedServer() as server:
            click.echo(f"Made {make_archive(find_java(), server.namesrv_addr)}.")


if __name__ == "__main__":
    main()
