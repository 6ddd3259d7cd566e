"""The plug-in as a project with tests sees it: fixtures, options, and its cost if it is not used.

Each test writes a small project and runs pytest on it, in this process if that is possible.
"""

import os
import re
import subprocess
import sys

import pocketmq.testing.rocketmq  # noqa: F401  # here once, not again in each of the runs below
import pytest
from pocketmq import testing
from pocketmq.testing.fixtures.one_test import ALLOWED

pytest_plugins = ["pytester"]

INI = """[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
addopts = -p no:hypothesispytest
"""
"""Hypothesis would be imported again for each summary, which takes longer than all the rest."""


@pytest.fixture(autouse=True)
def _project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "as-before:1")
    pytester.makeini(INI)


def test_every_test_has_names_of_its_own_and_an_empty_broker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        NAMES = set()

        @pytest.mark.parametrize("turn", range(3))
        def test_turn(rocketmq, turn):
            topic = rocketmq.topic("orders")
            NAMES.add(topic)
            assert len(NAMES) == turn + 1
            assert rocketmq.messages("fixed-name") == []
            assert rocketmq.send("fixed-name", "one", queue_id=0).queue_offset == 0
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=3)


def test_topic_of_a_wider_fixture_stays(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from pocketmq.testing import RocketMQ

        @pytest.fixture(scope="module")
        def catalogue(rocketmq_server):
            wide = RocketMQ(rocketmq_server, "wide-")
            topic = wide.topic("catalogue")
            wide.send(topic, "one")
            return topic

        @pytest.mark.parametrize("turn", range(2))
        def test_turn(catalogue, rocketmq, turn):
            assert [message.text for message in rocketmq.messages(catalogue)] == ["one"]
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=2)


def test_code_under_test_finds_the_server_in_its_environment(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os

        def test_before():
            assert os.environ["NAMESRV_ADDR"] == "as-before:1"

        def test_address(rocketmq):
            assert os.environ["NAMESRV_ADDR"] == rocketmq.namesrv_addr != "as-before:1"
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=2)
    assert os.environ["NAMESRV_ADDR"] == "as-before:1"


def test_coroutine_tests_use_the_same_fixtures(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio

        async def test_async(rocketmq):
            sending = asyncio.to_thread(rocketmq.send, rocketmq.topic("orders"), "one")
            waiting = asyncio.to_thread(rocketmq.wait_messages, rocketmq.prefix + "orders", 1)
            messages, _ = await asyncio.gather(waiting, sending)
            assert len(messages) == 1
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


CONFIG_TEST = """
    def test_config(rocketmq_server, request):
        config = rocketmq_server.broker.config
        print("\\nSEEN", config.emulate, config.broker_name, config.default_topic_queue_nums)
"""


@pytest.mark.parametrize(
    ("ini", "conftest", "words", "seen"),
    [
        ("", "", (), "5 broker-a 8"),
        ("rocketmq_emulate = 4.9", "", (), "4 broker-a 8"),
        ("rocketmq_emulate = 4.9", "", ("--rocketmq-emulate", "5"), "5 broker-a 8"),
        ("rocketmq_conf = from.conf", "", (), "5 conf-file 3"),
        ("rocketmq_conf = from.conf", "", ("--rocketmq-conf", "other.conf"), "5 other-file 8"),
        ("rocketmq_conf = from.conf\nrocketmq_set = brokerName=ini", "", (), "5 ini 3"),
        ("rocketmq_set =\n  brokerName=ini\n  defaultTopicQueueNums=2", "", (), "5 ini 2"),
        ("rocketmq_set = brokerName=ini", "brokerName='fixture'", (), "5 fixture 8"),
        ("", "brokerName='fixture'", ("--rocketmq-set", "brokerName=words"), "5 words 8"),
    ],
)
def test_settings_are_read_from_ini_fixture_and_options_in_this_order(
    pytester: pytest.Pytester, ini: str, conftest: str, words: tuple[str, ...], seen: str
) -> None:
    pytester.makeini(f"{INI}{ini}\n")
    pytester.makefile(".conf", **{"from": "brokerName=conf-file\ndefaultTopicQueueNums=3\n"})
    pytester.makefile(".conf", other="brokerName=other-file\n")
    if conftest:
        pytester.makeconftest(
            "import pytest\n\n@pytest.fixture(scope='session')\n"
            f"def rocketmq_settings():\n    return dict({conftest})\n"
        )
    pytester.makepyfile(CONFIG_TEST)
    result = pytester.runpytest_inprocess("-s", *words)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"SEEN {seen}"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--rocketmq-emulate", "3"), "RocketMQ server: settings: emulate must be 4 *"),
        (("--rocketmq-conf", "missing.conf"), "RocketMQ server: cannot read *missing.conf: No such file*"),
        (("--rocketmq-set", "brokerNam=x"), "*unknown key brokerNam, did you mean brokerName?"),
        (("--rocketmq-set", "brokerName"), "*--rocketmq-set: brokerName is not KEY=VALUE"),
    ],
)
def test_server_that_cannot_start_is_one_line(
    pytester: pytest.Pytester, words: tuple[str, ...], complaint: str
) -> None:
    pytester.makepyfile(CONFIG_TEST)
    result = pytester.runpytest_inprocess("-q", *words)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([complaint])
    assert "Traceback" not in result.stdout.str()


def test_no_server_module_is_imported_if_no_test_uses_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_modules(pytestconfig):
            assert pytestconfig.pluginmanager.has_plugin("pocketmq")
            ours = sorted(name for name in sys.modules if name.startswith("pocketmq."))
            assert ours == [
                "pocketmq.testing",
                "pocketmq.testing.fixtures",
                "pocketmq.testing.fixtures.of_test",
                "pocketmq.testing.pytest_plugin",
            ]
            assert not {"msgspec", "uvloop", "orjson"} & sys.modules.keys()
        """
    )
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"], cwd=pytester.path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


# -- faults and the request log


def test_an_unused_rule_fails_the_test_and_ends_with_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_unused(rocketmq):
            rocketmq.faults.refuse(code="SEND_MESSAGE_V2", topic="orders", response="SYSTEM_BUSY")

        def test_next(rocketmq):
            assert rocketmq.faults.rules == []
            rocketmq.send("orders", "not refused")

        def test_removed(rocketmq):
            rocketmq.faults.refuse(code="SEND_MESSAGE_V2").remove()

        async def test_unused_in_a_coroutine(rocketmq):
            rocketmq.faults.silence(topic="other")
        """
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        ["*refuse(code=SEND_MESSAGE_V2 topic=orders, response=SYSTEM_BUSY) was never used*"]
    )


def test_a_failed_test_carries_its_last_20_requests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_fails(rocketmq):
            for number in range(30):
                rocketmq.send("orders", str(number), queue_id=0)
            assert False

        def test_has_none_of_these(rocketmq):
            assert rocketmq.requests.find() == []
            assert False, "nothing to show"
        """
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=2)
    text = result.stdout.str()
    assert text.count("the last 20 requests to the RocketMQ server") == 1
    assert text.count("SEND_MESSAGE_V2 topic=orders queue_id=0") == 20


def test_a_failed_test_is_not_blamed_for_its_rules(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_fails(rocketmq):
            rocketmq.faults.silence(topic="other")
            assert False, "the reason"
        """
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    assert "was never used" not in result.stdout.str()


def test_every_word_of_the_marker_and_every_fixture_is_listed(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        from pocketmq.testing import factories

        old_server = factories.rocketmq_server(settings={"emulate": "4.9"})
        old = factories.rocketmq("old_server")
        staging = factories.rocketmq_noproc("127.0.0.1:1")
        """
    )
    listed = pytester.runpytest_inprocess("--markers").stdout.str()
    assert all(f"{word}=" in listed for word in ALLOWED)
    fixtures = pytester.runpytest_inprocess("--fixtures").stdout.str()
    for name in ("old_server", "old", "staging", "rocketmq", "rocketmq_server", "rocketmq_noproc"):
        described = re.search(rf"^{name}\b.*\n    (.*)", fixtures, re.MULTILINE)
        assert described is not None, name
        assert described[1] != "no docstring available", name


def test_what_annotations_need_is_exported() -> None:
    assert [name for name in testing.__all__ if not hasattr(testing, name)] == []
