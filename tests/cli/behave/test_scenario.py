"""Scenarios: those that come with PocketMQ can be read, and a mistake is one line that names its place."""

from pathlib import Path

import pytest
from pocketmq.cli.behave.scenario import Step, built_in, played_for, read_scenario
from pocketmq.testing.errors import LoadError


@pytest.mark.parametrize("name", built_in())
def test_a_scenario_that_comes_with_pocketmq_can_be_read(name: str) -> None:
    scenario = read_scenario(name)
    assert scenario.name == name
    assert scenario.about.endswith(".")
    assert scenario.steps


def test_the_conditions_of_the_bench_are_all_there() -> None:
    assert {
        *(
            "broker-restarted",
            "broker-killed",
            "slow-pulls",
            "lost-notification",
            "lock-refused",
            "send-busy",
        ),
        *("route-stale", "broker-hidden", "name-server-down", "duplicate-reply", "slave-reads", "calm"),
    } <= set(built_in())


def test_a_file_has_its_words_and_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "about: Mine.\nrole: producer\nemulate: 4.9\nbefore: [stop: n0, replicate]\n"
        "steps:\n  - feed: 3\n  - pause: 0.5\n"
    )
    scenario = read_scenario(str(path))
    assert (scenario.name, scenario.role, scenario.emulate) == ("mine", "producer", "4.9")
    assert (scenario.brokers, scenario.slaves, scenario.name_servers, scenario.queues) == (1, 0, 1, 4)
    assert scenario.before == (Step("stop", "n0"), Step("replicate", None))
    assert scenario.steps == (Step("feed", {"messages": 3}), Step("pause", 0.5))


def test_without_names_those_are_played_that_the_protocol_can_do() -> None:
    of_grpc, of_remoting = ({one.name for one in played_for(word)} for word in ("grpc", "remoting"))
    assert of_grpc | of_remoting == set(built_in())
    assert {"calm", "broker-killed", "send-busy"} <= of_grpc & of_remoting
    assert {"receive-cut", "ack-lost", "first-position", "dead-letters"} <= of_grpc - of_remoting
    assert {"lock-refused", "lost-notification", "slow-pulls"} <= of_remoting - of_grpc


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "about is missing"),
        ("about: x", "steps is missing"),
        ("[1]", "must be a map with about, role"),
        ("about: x\nabout: y\nsteps: []", ", line 2: about is named twice"),
        ("about: x\nstep: []", "unknown word step, allowed are about, role,"),
        ("about: ''\nsteps: []", "about must be a text that is not empty, got ''"),
        (
            "about: x\nrole: king\nsteps: []",
            "role must be one of producer, consumer, ordered, both, got 'king'",
        ),
        (
            "about: x\nclients: http\nsteps: []",
            "clients must be one of all, grpc, remoting, got 'http'",
        ),
        ("about: x\nretries: 17\nsteps: []", "retries must be a whole number from 0 to 16, got 17"),
        ("about: x\nbrokers: 0\nsteps: []", "brokers must be a whole number from 1 to 8, got 0"),
        ("about: x\nsteps: {pause: 1}", "steps must be a list, got {'pause': 1}"),
        ("about: x\nsteps: [{pause: 1, feed: 2}]", "steps 1 must be one word with its value"),
        ("about: x\nsteps: [end_faults, dance]", "steps 2: unknown word dance, allowed are feed, until"),
        (
            "about: x\nsteps: [{pause: -1}]",
            "steps 1: pause must be a number of seconds from 0 to 3600, got -1",
        ),
        ("about: x\nsteps: [{pause: yes}]", "steps 1: pause must be a number of seconds"),
        ("about: x\nsteps: [{end_faults: 1}]", "steps 1: end_faults takes no value, got 1"),
        (
            "about: x\nsteps: [{until: {sung: 1}}]",
            "steps 1: until has no word sung, allowed are sent, delivered",
        ),
        (
            "about: x\nsteps: [{until: {sent: all}}]",
            "steps 1: until sent must be a whole number from 1 to 10000",
        ),
        ("about: x\nsteps: [{feed: 0}]", "steps 1: feed messages must be a whole number from 1"),
        ("about: x\nbefore: [{fault: 1}]\nsteps: []", "before 1: fault must be a map, got 1"),
        ("about: x\nsteps: [{start_program: 9}]", "start_program must be a whole number from 1 to 8, got 9"),
        ("about: {a", "line 1: "),
    ],
)
def test_a_mistake_is_one_line_that_names_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(LoadError) as caught:
        read_scenario(str(path))
    assert complaint in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_name_that_no_scenario_has_lists_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(
        LoadError,
        match=r"no scenario is called calmer: use a file, or one of ack-lost, .*answer-lost, .*calm,",
    ):
        read_scenario("calmer")
    with pytest.raises(LoadError, match=r"cannot read .*none.yaml: No such file"):
        read_scenario(str(tmp_path / "none.yaml"))
