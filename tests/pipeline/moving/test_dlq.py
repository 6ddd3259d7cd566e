"""Dead letters are counted with their origin, and sent back once."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from pocketmq.client import MessageExt
from pocketmq.testing import EmbeddedServer, RocketMQ

from pipeline import commands
from pipeline.moving.dlq_runs import DEAD, run, tables
from pipeline.topics import bodies, give_back, make
from testing_acts import consuming
from waiting import until


@pytest.fixture
def rocketmq() -> Iterator[RocketMQ]:
    with EmbeddedServer() as server:
        rocketmq = RocketMQ(server)
        rocketmq.topic("Orders", queues=2)
        rocketmq.group("billing")
        for name in (DEAD, "%DLQ%idle"):
            make(rocketmq, name)
        for number in range(5):
            bury(rocketmq, number)
        yield rocketmq


def bury(rocketmq: RocketMQ, number: int, origin: str = "Orders") -> None:
    properties = {"RETRY_TOPIC": origin, "color": "red"} if origin else {"color": "red"}
    rocketmq.send(DEAD, f"m{number}", tags="AB"[number % 2], keys=f"k{number}", properties=properties)


def test_dead_letters_are_counted_and_nothing_is_sent(rocketmq: RocketMQ, tmp_path: Path) -> None:
    ran = run(rocketmq)
    assert ran.exit_code == 1
    assert "billing: 5 dead messages of Orders" in ran.output
    assert "Nothing was sent" in ran.output
    found = tables(rocketmq, tmp_path)
    assert [
        (row["consumerGroup"], row["originTopic"], row["tags"], row["messages"]) for row in found["groups"]
    ] == [("billing", "Orders", "A", 3), ("billing", "Orders", "B", 2)]
    assert rocketmq.messages("Orders") == []


def test_attempts_and_age_of_a_message_that_its_group_gave_up_on(rocketmq: RocketMQ, tmp_path: Path) -> None:
    rocketmq.send("Orders", "hopeless", tags="C")
    (message,) = rocketmq.messages("Orders")
    give_back(rocketmq, message, "billing")
    (found,) = [row for row in tables(rocketmq, tmp_path)["groups"] if row["tags"] == "C"]
    assert (found["originTopic"], found["messages"], found["state"]) == ("Orders", 1, "dead")
    assert (found["leastAttempts"], found["mostAttempts"]) == (1, 1)
    assert 0 <= found["oldestAgeSeconds"] < 60
    assert tables(rocketmq, tmp_path, "--until", "2001-01-01T00:00:00")["groups"] == []


def test_dead_letters_go_back_to_their_topic_once(rocketmq: RocketMQ, tmp_path: Path) -> None:
    ids = {one.text: one.message_id for one in rocketmq.messages(DEAD)}
    assert tables(rocketmq, tmp_path, "--send-back", "origin")["sent"] == [
        {"deadIn": DEAD, "target": "Orders", "what": "sent", "messages": 5}
    ]
    copies = rocketmq.messages("Orders")
    assert sorted(one.text for one in copies) == bodies(5)
    assert {one.text: one.message_id for one in copies} == ids
    (copy,) = [one for one in copies if one.text == "m3"]
    assert (copy.tags, copy.keys) == ("B", ["k3"])
    assert copy.properties["color"] == "red"
    assert copy.properties["sentBackFrom"] == DEAD
    assert "RETRY_TOPIC" not in copy.properties
    bury(rocketmq, 9)
    assert tables(rocketmq, tmp_path, "--send-back", "origin")["sent"][0]["messages"] == 1
    assert tables(rocketmq, tmp_path, "--send-back", "origin")["sent"] == []
    assert tables(rocketmq, tmp_path, "--send-back", "origin", "--again")["sent"][0]["messages"] == 6


def test_dead_letters_go_back_to_their_group_alone(rocketmq: RocketMQ, tmp_path: Path) -> None:
    sent = tables(rocketmq, tmp_path, "--send-back", "group", "--tag", "A")["sent"]
    assert sent == [{"deadIn": DEAD, "target": "%RETRY%billing", "what": "sent", "messages": 3}]
    assert rocketmq.messages("Orders") == []
    assert all(one.properties["RETRY_TOPIC"] == "Orders" for one in rocketmq.messages("%RETRY%billing"))
    assert tables(rocketmq, tmp_path, "--send-back", "origin")["sent"][0]["messages"] == 5, (
        "a part is not remembered"
    )


def test_a_dead_letter_without_origin_is_counted_and_stays(rocketmq: RocketMQ, tmp_path: Path) -> None:
    bury(rocketmq, 7, origin="")
    sent = tables(rocketmq, tmp_path, "--send-back", "origin")["sent"]
    assert [(row["what"], row["messages"]) for row in sent] == [
        ("sent", 5),
        ("not sent: the topic of origin is unknown", 1),
    ]
    assert len(rocketmq.messages("Orders")) == 5


def test_groups_and_origins_are_chosen(rocketmq: RocketMQ, tmp_path: Path) -> None:
    others = run(rocketmq, "--groups", "others")
    assert others.exit_code == 0
    assert "none of others has a dead letter topic" in others.output
    assert tables(rocketmq, tmp_path, "--origin", "Bills")["groups"] == []
    assert (
        tables(rocketmq, tmp_path, "--groups", "billing,idle", "--origin", "Orders", "--tag", "B")["groups"]
        != []
    )


def test_a_dry_run_says_what_would_be_sent(rocketmq: RocketMQ, tmp_path: Path) -> None:
    words = ("--send-back", "origin", "--dry-run")
    assert tables(rocketmq, tmp_path, *words)["sent"] == [
        {"deadIn": DEAD, "target": "Orders", "what": "would be sent", "messages": 5}
    ]
    assert "Nothing was sent, because of --dry-run." in run(rocketmq, *words).output
    assert rocketmq.messages("Orders") == []
    assert tables(rocketmq, tmp_path, "--send-back", "origin")["sent"][0]["messages"] == 5
    assert tables(rocketmq, tmp_path, *words)["sent"] == [], "all of them were sent"


def test_a_message_sent_back_is_consumed_once(rocketmq: RocketMQ, tmp_path: Path) -> None:
    ran = run(rocketmq, "--send-back", "group")
    assert "Copies were sent, and will not be sent again without --again." in ran.output
    again = run(rocketmq, "--send-back", "group")
    assert "No copies were sent: there was nothing to send, or all of it was sent before." in again.output
    assert again.exit_code == 1, "the dead letters are still there"
    rocketmq.send("%RETRY%billing", "the end", queue_id=0)  # behind what was sent back

    async def consume() -> list[MessageExt]:
        seen: list[MessageExt] = []
        async with consuming(rocketmq, "billing", seen.append, "Orders"):
            await until(lambda: any(one.body == b"the end" for one in seen))
        return [one for one in seen if one.body != b"the end"]

    seen = asyncio.run(consume())
    assert sorted(one.body.decode() for one in seen) == bodies(5)
    assert {one.topic for one in seen} == {"Orders"}


def test_attempts_and_ages_are_counted_and_chosen(rocketmq: RocketMQ, tmp_path: Path) -> None:
    found = tables(rocketmq, tmp_path)
    assert found["attempts"] == [{"consumerGroup": "billing", "state": "dead", "attempts": 0, "messages": 5}]
    assert found["ages"] == [
        {"consumerGroup": "billing", "state": "dead", "age": "under an hour", "messages": 5}
    ]
    assert tables(rocketmq, tmp_path, "--attempts", "1")["attempts"] == []
    assert tables(rocketmq, tmp_path, "--attempts", "1", "--send-back", "origin")["sent"] == []
    ran = run(rocketmq, "--attempts", "0", "--send-back", "origin")
    assert "Not all dead letters were wanted, so a second run sends these again." in ran.output


def test_a_misspelt_group_is_answered_with_the_one_that_was_meant(rocketmq: RocketMQ) -> None:
    ran = run(rocketmq, "--group", "biling")
    assert "none of biling has a dead letter topic; did you mean billing?" in ran.output


def test_mistakes_are_named(rocketmq: RocketMQ, tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    ran = commands.run("dlq", "--store", str(tmp_path), "--send-back", "origin")
    assert (ran.exit_code, ran.output) == (2, "pocketmq: --send-back needs --namesrv: a store is only read\n")
    assert "--dry-run and --again are for --send-back" in run(rocketmq, "--dry-run").output
    assert "--topics: dead letters are chosen by" in run(rocketmq, "--topics", "T").output
