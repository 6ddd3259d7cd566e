"""Scenarios: those that come with PocketMQ can be read, and a mistake is one line that names its place."""

from pathlib import Path

import pytest
from pocketmq.testing.behave.scenario import Feed, Pause, Replicate, Stop, built_in, played_for, read_scenario
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
    assert scenario.before == (Stop("n0"), Replicate())
    assert scenario.steps == (Feed(3), Pause(0.5))


def test_without_names_those_are_played_that_the_protocol_can_do() -> None:
    of_grpc, of_remoting = ({one.name for one in played_for(word)} for word in ("grpc", "remoting"))
    assert of_grpc | of_remoting == set(built_in())
    assert {"calm", "broker-killed", "send-busy"} <= of_grpc & of_remoting
    assert {"receive-cut", "ack-lost", "first-position", "dead-letters"} <= of_grpc - of_remoting
    assert {"lock-refused", "lost-notification", "slow-pulls"} <= of_remoting - of_grpc


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "required field `about`"),
        ("about: x", "required field `steps`"),
        ("[1]", "must be a map with about, steps"),
        ("about: x\nabout: y\nsteps: []", ", line 2: about is named twice"),
        ("about: x\nstep: []\nsteps: []", "unknown field `step`"),
        ("about: ''\nsteps: []", "Expected `str` of length >= 1 - at `$.about`"),
        ("about: x\nrole: king\nsteps: []", "Invalid enum value 'king' - at `$.role`"),
        ("about: x\nclients: http\nsteps: []", "Invalid enum value 'http' - at `$.clients`"),
        ("about: x\nretries: 17\nsteps: []", "Expected `int` <= 16 - at `$.retries`"),
        ("about: x\nbrokers: 0\nsteps: []", "Expected `int` >= 1 - at `$.brokers`"),
        ("about: x\nsteps: {pause: 1}", "Expected `array`, got `object` - at `$.steps`"),
        ("about: x\nsteps: [{pause: 1, feed: 2}]", "a step must be one word with its value"),
        ("about: x\nsteps: [end_faults, dance]", "unknown step 'dance', allowed are feed, until"),
        ("about: x\nsteps: [{pause: -1}]", "Expected `float` >= 0.0 - at `$.steps[0].seconds`"),
        ("about: x\nsteps: [{pause: yes}]", "Expected `float`, got `bool` - at `$.steps[0].seconds`"),
        ("about: x\nsteps: [{end_faults: 1}]", "end_faults takes no value, got 1"),
        ("about: x\nsteps: [{until: {sung: 1}}]", "unknown field `sung` - at `$.steps[0]`"),
        (
            "about: x\nsteps: [{until: {sent: all}}]",
            "Expected `int | null`, got `str` - at `$.steps[0].sent`",
        ),
        ("about: x\nsteps: [{feed: 0}]", "Expected `int` >= 1 - at `$.steps[0].messages`"),
        ("about: x\nbefore: [{fault: 1}]\nsteps: []", "got `int` - at `$.before[0].words`"),
        ("about: x\nsteps: [{start_program: 9}]", "Expected `int` <= 8 - at `$.steps[0].count`"),
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
