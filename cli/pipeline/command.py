"""`pocketmq pipeline JOB`: the jobs of `pocketmq.pipeline`. They import DuckDB or Spark when they run, not before."""

from importlib import import_module
from typing import Final

import click

from ..mistakes import SpellingGroup

JOBS: Final = {
    "demo": "pocketmq.cli.pipeline.demo",
    "behaviour": "pocketmq.pipeline.jobs.behaviour.job",
    "audit": "pocketmq.pipeline.jobs.answers.audit",
    "duplicates": "pocketmq.pipeline.jobs.answers.duplicates",
    "stats": "pocketmq.pipeline.jobs.answers.stats",
    "find": "pocketmq.pipeline.jobs.answers.find",
    "sql": "pocketmq.pipeline.jobs.answers.sql",
    "latest": "pocketmq.pipeline.jobs.answers.latest",
    "compare": "pocketmq.pipeline.jobs.answers.compare",
    "dlq": "pocketmq.pipeline.jobs.moving.dlq",
    "mirror": "pocketmq.pipeline.jobs.moving.mirror",
    "ingest": "pocketmq.pipeline.jobs.moving.ingest",
    "lag": "pocketmq.pipeline.jobs.answers.lag",
    "latency": "pocketmq.pipeline.jobs.behaviour.latency",
    "replay": "pocketmq.pipeline.jobs.moving.replay",
    "export": "pocketmq.pipeline.jobs.moving.export",
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
