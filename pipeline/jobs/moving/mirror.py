"""Topics to another cluster, continuously: `pocketmq pipeline mirror -n ADDR --to-namesrv ADDR2 --topics Orders`.

Each queue is copied in its order to one queue of the other cluster. The position is the offset of group
`pocketmq-mirror-NAME` in the source, so lag tools show how far it is, and a second run continues. `--map FILE` writes
down which offset became which. With `--groups` the offsets of these consumer groups are translated and committed in the
target after each round, never backwards, so that their consumers can move: end them here, wait for the next round,
start them there. From then on their offsets are left alone. One round: `mirroring.py`.
"""

import logging
import sys
import threading
import time
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from pocketmq.client.access import NO_ACCESS_KEYS, Access
from pocketmq.client.access_options import access_options
from pocketmq.protocol.message.topics import SYSTEM_PREFIX, UNSENDABLE_TOPICS

from ...errors import OptionError
from ...spark.session.own_folder import only_one
from ...tables.planning.option_values import check_name_servers, names_in
from ..answers.on_engine import run_without_engine
from ..answers.run import ended_by_signals, output_options
from ..report.report import Outputs, Report, Section
from .replay import with_other_keys

if TYPE_CHECKING:
    from .mirroring import Mirroring

_log = logging.getLogger("pocketmq.pipeline")

GROUP_PREFIX: Final = "pocketmq-mirror-"
PAUSE_SECONDS: Final = 1.0
WAIT_SECONDS: Final = 60.0
"""How long `--once` waits for a broker that does not answer."""
LEASE_SECONDS: Final = 65.0
"""How long a mirror waits for the lease: the lock of one that was killed ends after 60."""
SAY_SECONDS: Final = 10.0
"""Between two lines of progress."""


class Mirror(msgspec.Struct, frozen=True, kw_only=True):
    """What to mirror, and how."""

    namesrv_addr: str
    target_namesrv_addr: str
    topics: str
    name: str = "default"
    prefix: str = ""
    groups: str | None = None
    map_file: str | None = None
    starts_at_end: bool = False
    is_once: bool = False
    access: Access = NO_ACCESS_KEYS
    target_access: Access | None = None

    def check(self) -> None:
        """`OptionError` for everything that can be checked without a connection."""
        check_name_servers("--namesrv", self.namesrv_addr)
        check_name_servers("--to-namesrv", self.target_namesrv_addr)
        if self.namesrv_addr == self.target_namesrv_addr and not self.prefix:
            raise OptionError(
                "--to-namesrv", "must be another cluster, or --prefix must give the copies other names"
            )
        for topic in self.topic_names():
            if topic in UNSENDABLE_TOPICS or topic.startswith(SYSTEM_PREFIX):
                raise OptionError(
                    "--topics", f": {topic} belongs to the broker itself, and cannot be sent to another"
                )
        if not self.name.replace("-", "").replace("_", "").isalnum():
            raise OptionError("--name", f"must have letters, digits, - and _ only, got {self.name!r}")
        if self.groups and self.map_file is None:
            raise OptionError(
                "--map", "is required with --groups: without it a second run knows no earlier offsets"
            )
        if self.map_file is not None and not Path(self.map_file).absolute().parent.is_dir():
            raise OptionError("--map", f": folder {Path(self.map_file).absolute().parent} does not exist")

    def topic_names(self) -> dict[str, str]:
        """Source topic -> target topic."""
        return {name: f"{self.prefix}{name}" for name in names_in(self.topics)}


def build(
    mirror: Mirror,
    ended: threading.Event,
    *,
    is_quiet: bool = True,
    while_copying: AbstractContextManager[None] | None = None,
) -> Report:
    """Copy until `ended` is set, or with `is_once` until everything is copied, and report how much. `while_copying` is
    entered once both sides have answered.

    `PipelineError` if a mirror of this name copies one of the topics already: they share a position, and both would
    copy everything. One on this machine is known at once, and what it had locked when it was killed is its
    successor's.
    """
    with ExitStack() as stack:
        owner = ""
        for topic in sorted(mirror.topic_names()):
            what = f"mirror {mirror.name} of {topic} from {mirror.namesrv_addr}"
            owner = stack.enter_context(only_one(what, what))
        return _mirror(mirror, owner, ended, while_copying or nullcontext(), is_quiet=is_quiet)


def _mirror(
    mirror: Mirror,
    owner: str,
    ended: threading.Event,
    while_copying: AbstractContextManager[None],
    *,
    is_quiet: bool,
) -> Report:
    import pyarrow as pa

    from ..sql.arrow_frame import frame_of_rows
    from .mirror_queues import Side
    from .mirroring import Mirroring
    from .offset_map import OffsetMap

    target_access = mirror.access if mirror.target_access is None else mirror.target_access
    mirroring = Mirroring(
        Side(mirror.namesrv_addr, mirror.access),
        Side(mirror.target_namesrv_addr, target_access),
        group=f"{GROUP_PREFIX}{mirror.name}",
        owner=owner,
        starts_at_end=mirror.starts_at_end,
        offsets=OffsetMap(None if mirror.map_file is None else Path(mirror.map_file)),
    )
    try:
        mirroring.queues.find(mirror.topic_names())
        with while_copying:
            moved = _run(mirroring, mirror, ended, is_quiet=is_quiet)
        waiting = mirroring.waiting()
    finally:
        mirroring.close()
    rows = [
        (topic, target, mirroring.copied[topic], mirroring.found[topic], mirroring.lost[topic])
        for topic, target in mirror.topic_names().items()
    ]
    numbers = dict.fromkeys(("copied", "found", "lost"), pa.int64())
    schema = {"topic": pa.string(), "target": pa.string(), **numbers}
    findings = [
        f"{topic}: {count:,} messages were deleted before they were copied"
        for topic, count in sorted((+mirroring.lost).items())
    ]
    lead = (
        f"{mirroring.copied.total():,} messages copied to {mirror.target_namesrv_addr}, {waiting:,} waiting."
    )
    if mirroring.found.total():
        lead += f" {mirroring.found.total():,} more were there already: they were not sent twice."
    if mirroring.away:
        names = ", ".join(f"{name} of the {side}" for side, name in sorted(mirroring.away))
        lead += f" Not asked, because they do not answer: {names}."
    for name in sorted(mirroring.slaves):
        lead += f" {name} of the source has no master in its route: what its slave holds was copied."
    if mirror.groups:
        lead += f" {moved:,} offsets of {mirror.groups} are known there."
        if mirroring.refused_groups:
            lead += f" Consumers there: {', '.join(sorted(mirroring.refused_groups))}."
    return Report("Mirror", lead, [Section("topics", "Topics", frame_of_rows(schema, rows))], findings)


def _run(mirroring: "Mirroring", mirror: Mirror, ended: threading.Event, *, is_quiet: bool) -> int:
    """Round after round; the number of group offsets that are known in the target."""
    from .mirror_lease import LeaseLost

    moved = 0
    said_at = answered_at = had_lease_at = time.monotonic()
    is_waiting = False
    while not ended.is_set():
        try:
            done = mirroring.round(ended.is_set)
        except LeaseLost as error:
            if time.monotonic() - had_lease_at > LEASE_SECONDS:
                raise
            if not is_waiting:
                _log.warning("waiting %g s for the lease: %s", LEASE_SECONDS, error)
            is_waiting = True
            ended.wait(PAUSE_SECONDS)
            continue
        had_lease_at, is_waiting = time.monotonic(), False
        if mirror.groups:
            moved = mirroring.move_groups(names_in(mirror.groups))
        now = time.monotonic()
        if done or not mirroring.away:
            answered_at = now
        if done and not is_quiet and now - said_at >= SAY_SECONDS:
            said_at = now
            print(f"{mirroring.copied.total():,} messages copied", file=sys.stderr, flush=True)
        if mirror.is_once and not done:
            if not mirroring.away:
                break
            if now - answered_at > WAIT_SECONDS:
                raise mirroring.give_up(WAIT_SECONDS)
        if not done:
            ended.wait(PAUSE_SECONDS)
            mirroring.queues.find_new()
    return moved


@click.command("mirror")
@click.option("-n", "--namesrv", "namesrv_addr", required=True, metavar="ADDR", help="The cluster to read.")
@click.option(
    "--to-namesrv", "target_namesrv_addr", required=True, metavar="ADDR", help="The cluster to write to."
)
@click.option("--topics", required=True, metavar="T[,T]", help="Topics to copy.")
@click.option(
    "--name", default="default", show_default=True, help="The name of this mirror, for its position."
)
@click.option("--prefix", default="", metavar="TEXT", help="Put before the names of the copies' topics.")
@click.option("--groups", metavar="G[,G]", help="Translate and commit the offsets of these groups.")
@click.option(
    "--map", "map_file", metavar="FILE", help="Write down which offset became which, as lines of JSON."
)
@click.option(
    "--from-end", "starts_at_end", is_flag=True, help="On the first run: only messages from now on."
)
@click.option("--once", "is_once", is_flag=True, help="End when everything is copied.")
@click.option("--to-access-key", metavar="KEY", help="The key for --to-namesrv; default: the same.")
@click.option("--to-secret-key", metavar="KEY", help="The secret that belongs to that key.")
@access_options
@output_options
def main(to_access_key: str | None, to_secret_key: str | None, **options: Any) -> None:
    """Copy topics to another cluster, until a signal."""
    fields = {name: options.pop(name) for name in Mirror.__struct_fields__ if name != "target_access"}

    def copy(outputs: Outputs) -> Report:
        target_access = with_other_keys(fields["access"], to_access_key, to_secret_key)
        mirror = Mirror(**fields, target_access=target_access)
        mirror.check()
        ended = threading.Event()
        return build(mirror, ended, is_quiet=outputs.is_quiet, while_copying=ended_by_signals(ended))

    run_without_engine("mirror", copy, **options)
