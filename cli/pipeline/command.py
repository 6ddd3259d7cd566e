"""`pocketmq pipeline JOB`: the jobs of `pocketmq.pipeline`. They import DuckDB or Spark when they run, not before."""

from importlib import import_module
from typing import Final

import click

from ..mistakes import SpellingGroup

JOBS: Final = {
    "demo": "pocketmq.cli.pipeline.demo",
    "behaviour": "pocketmq.pipeline.behaviour.job",
    "audit": "pocketmq.pipeline.jobs.audit",
    "duplicates": "pocketmq.pipeline.jobs.duplicates",
    "stats": "pocketmq.pipeline.jobs.stats",
    "find": "pocketmq.pipeline.jobs.find",
    "sql": "pocketmq.pipeline.jobs.sql",
    "latest": "pocketmq.pipeline.jobs.latest",
    "compare": "pocketmq.pipeline.jobs.compare",
    "dlq": "pocketmq.pipeline.moving.dlq",
    "mirror": "pocketmq.pipeline.moving.mirror",
    "ingest": "pocketmq.pipeline.moving.ingest",
    "lag": "pocketmq.pipeline.jobs.lag",
    "latency": "pocketmq.pipeline.behaviour.latency",
    "replay": "pocketmq.pipeline.moving.replay",
    "export": "pocketmq.pipeline.moving.export",
    "prepare": "pocketmq.cli.pipeline.prepare",
}
"""Name -> the module whose `main` is the command."""


class JobGroup(SpellingGroup):
    """A click group that imports a job when it is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(JOBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in JOBS:
            return None
        command = import_module(JOBS[cmd_name]).main
        assert isinstance(command, click.Command)
        return command


@click.command(cls=JobGroup)
def pipeline() -> None:
    """Topics, stores and client behaviour as tables: jobs on DuckDB and Spark."""
