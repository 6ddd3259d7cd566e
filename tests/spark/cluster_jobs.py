"""Every job of the command line that Spark can run, with what it reads, its exit code and a text that it prints."""

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pocketmq.testing import EmbeddedServer, RocketMQ

from pipeline.topics import make
from spark.drivers import run_job
from spark.planted_store import write_store

FOUND = 1


class Job(NamedTuple):
    """A command line after `pocketmq pipeline`, its exit codes, and a text that it prints."""

    words: str
    codes: tuple[int, ...]
    printed: str


JOBS = [
    Job("audit --store {store}", (FOUND,), "bad crc"),
    Job("duplicates --store {store}", (FOUND,), "stored twice"),
    Job("stats --store {store}", (0,), "Rows:"),
    Job("find --store {store} --text 'body 7'", (FOUND,), "k7"),
    Job("sql 'select count(*) as n from messages' --store {store} --damaged", (0,), "80"),
    Job("latest -n {address} --topics T", (0,), "k9"),
    Job("compare {store} {address} --topics T", (FOUND,), "10 messages missing in"),
    Job("dlq -n {address}", (FOUND,), "1 dead message of T"),
    Job(
        "ingest -n {address} --topics T --to {out}/t --checkpoint {out}/c --decode json --schema 'id int' "
        "--bad {out}/bad",
        (0,),
        "10 messages of T written",
    ),
    Job("latency --journal {journal} --engine spark", (0,), "Sent, never pulled"),
    Job("export --store {store} --topics T --to {out}/export", (0,), "Rows:"),
    Job("replay -n {address} --topics T --to T2", (0,), "10 messages sent to T2"),
    Job("behaviour {journal}", (0, FOUND), "Rows:"),
]
"""One line of each job."""
MORE = [
    Job("audit --store {store} --no-crc --topics Orders", (FOUND,), "Orders"),
    Job("duplicates -n {address} --topics T", (0,), "Nothing found."),
    Job("stats -n {address} --topics T --keys 3", (0,), "k0"),
    Job("find -n {address} --topics T --key k3", (FOUND,), '{"id": 3}'),
    Job("sql 'select count(*) as n from journal' --journal {journal}", (0,), "│"),
    Job("compare {address} {address} --topics T", (0,), "Nothing found."),
    Job("dlq -n {address} --send-back group --again", (FOUND,), "Copies were sent, and will"),
    Job("latency -n {address}", (0,), "Rows:"),
    Job("export -n {address} --topics T --to {out}/exported", (0,), "10"),
    Job("replay -n {address} --topics T --to T2 --dry-run", (0,), "10 messages would be sent to T2"),
    Job("replay -n {address} --topics T --to T2 --checkpoint {out}/r", (0,), "10 messages sent to T2"),
]
"""The same jobs with other inputs and options."""
WITHOUT_SPARK = [
    Job("lag -n {address} --groups G --topics T", (0,), "Rows:"),
    Job("mirror -n {address} --to-namesrv {other} --topics T --once", (0,), "10 messages copied"),
]


@contextlib.contextmanager
def write_inputs(folder: Path) -> Iterator[dict[str, str]]:
    """A store with planted faults, a broker with a journal and a dead letter, another broker, a folder for outputs."""
    store, journal, out = write_store(folder / "store"), folder / "journal", folder / "out"
    out.mkdir()
    with EmbeddedServer(journal=journal) as server, EmbeddedServer() as other:
        rocketmq = RocketMQ(server)
        topic = rocketmq.topic("T", queues=2)
        rocketmq.topic("T2", queues=2)
        rocketmq.topic("RMQ_SYS_TRACE_TOPIC")
        for number in range(10):
            rocketmq.send(topic, f'{{"id": {number}}}', queue_id=number % 2, keys=f"k{number}")
        for name in ("%DLQ%billing", "%RETRY%billing"):
            make(rocketmq, name)
        rocketmq.send("%DLQ%billing", "dead", properties={"RETRY_TOPIC": "T"})
        yield {
            "store": str(store),
            "journal": str(journal),
            "address": server.namesrv_addr,
            "other": other.namesrv_addr,
            "out": str(out),
        }


def check_job(job: Job, inputs: dict[str, str], env: dict[str, str], *options: str) -> None:
    """Run a job as a command, and check its exit code and what it printed."""
    ran = run_job(env, *shlex.split(job.words.format(**inputs)), *options)
    assert ran.returncode in job.codes, ran.stdout + ran.stderr[-3000:]
    assert job.printed in ran.stdout, ran.stdout + ran.stderr[-3000:]
