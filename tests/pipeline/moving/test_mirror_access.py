"""A mirror between two clusters with access control and other keys on each side."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from pocketmq.testing import EmbeddedServer, RocketMQ

from pipeline.moving.mirrors import run_command, texts
from pipeline.topics import filled

RULES = """\
accounts:
  - accessKey: %s
    secretKey: %s
    defaultTopicPerm: DENY
    defaultGroupPerm: DENY
    topicPerms: [T=%s]
    groupPerms: [pocketmq-mirror-default=PUB|SUB, pocketmq-mirror-other=SUB, spark-rocketmq-source=SUB]
  - accessKey: onlyreads
    secretKey: onlyreads-secret
    defaultTopicPerm: SUB
    defaultGroupPerm: SUB
  - accessKey: onlysends
    secretKey: onlysends-secret
    defaultTopicPerm: PUB
    defaultGroupPerm: DENY
"""
READER, WRITER = ("source-key", "source-secret"), ("target-key", "target-secret")
BODIES = [f"m{number}" for number in range(6)]


def guarded(folder: Path, keys: tuple[str, str], rights: str) -> EmbeddedServer:
    """A server on the store of the folder, with its own keys."""
    (folder / "conf").mkdir(parents=True, exist_ok=True)
    (folder / "conf" / "plain_acl.yml").write_text(RULES % (*keys, rights))
    settings: dict[str, object] = {"aclEnable": True, "emulate": "4.9", "rocketmqHome": str(folder)}
    return EmbeddedServer(settings, store=folder / "store")


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RocketMQ, RocketMQ]]:
    folders = [tmp_path_factory.mktemp(name) for name in ("source", "target")]
    for folder, count in zip(folders, (len(BODIES), 0), strict=True):
        with EmbeddedServer(store=folder / "store") as server:
            filled(RocketMQ(server), "T", count)
    with guarded(folders[0], READER, "SUB") as source, guarded(folders[1], WRITER, "PUB|SUB") as target:
        yield RocketMQ(source), RocketMQ(target)


def run(
    sides: tuple[RocketMQ, RocketMQ], reader: tuple[str, str], writer: tuple[str, str], *more: str
) -> Result:
    keys = ["--access-key", reader[0], "--secret-key", reader[1]]
    keys += ["--to-access-key", writer[0], "--to-secret-key", writer[1]]
    return run_command(*sides, "T", *keys, *more)


@pytest.mark.parametrize(
    ("reader", "writer", "line"),
    [
        ((READER[0], "wrong"), WRITER, "the source: .*Check signature failed for accessKey=source-key"),
        (("nobody1", "nobody-secret"), WRITER, "the source: .*No acl config for nobody1"),
        (("onlysends", "onlysends-secret"), WRITER, "the source: .*No default permission for topic:T"),
        (READER, (WRITER[0], "wrong"), "the target: .*Check signature failed for accessKey=target-key"),
        (READER, READER, "the target: .*No acl config for source-key"),
        (READER, ("onlyreads", "onlyreads-secret"), "the target: .*No default permission for topic:T"),
    ],
)
def test_a_wrong_key_is_one_line_that_names_the_side(
    sides: tuple[RocketMQ, RocketMQ], reader: tuple[str, str], writer: tuple[str, str], line: str
) -> None:
    ran = run(sides, reader, writer)
    assert ran.exit_code == 2
    assert re.fullmatch(f"pocketmq: {line}\n", ran.output), ran.output
    assert sides[1].messages("T") == []


def test_one_key_without_the_other_is_named(sides: tuple[RocketMQ, RocketMQ]) -> None:
    ran = run(sides, READER, ("", "secret"))
    assert (ran.exit_code, ran.output) == (
        2,
        "pocketmq: --to-access-key, --to-secret-key: set both or none\n",
    )


def test_each_side_has_its_own_keys(sides: tuple[RocketMQ, RocketMQ]) -> None:
    ran = run(sides, READER, WRITER, "--quiet")
    assert (ran.exit_code, ran.output) == (0, "")
    assert texts(sides[1], "T") == BODIES
    assert "0 messages copied" in run(sides, READER, WRITER).output, "the position is kept on both sides"


def test_the_right_to_send_alone_is_enough_and_its_price_is_said(sides: tuple[RocketMQ, RocketMQ]) -> None:
    ran = run(sides, READER, ("onlysends", "onlysends-secret"), "--quiet", "--name", "other")
    assert ran.exit_code == 0, ran.output
    assert re.fullmatch(
        "pocketmq: the target: .*; a mirror that is killed will send again what it had in flight\n",
        ran.output,
    ), ran.output
