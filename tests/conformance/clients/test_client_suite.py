"""The tests of the Python client (`tests/client`) on the official servers: those that use a server only by the wire.

On ours they run every day, each on a server of its own; here one after the other on one server, in its namespace.
"""

import re
import sys
from pathlib import Path

import pytest

from client_certificates import FILES
from conformance.on_demand import ON_DEMAND
from conformance.servers.namespaces import clean_environment
from conformance.servers.processes import Running
from conformance.servers.server import NAMESRV_ADDR, Server, StartServer

ROOT = Path(__file__).parents[3]
TESTS = ROOT / "tests" / "client"
LIMIT_SECONDS = 600

ANSWERED_OTHERWISE_BY_4_9 = {
    "test_a_time_is_turned_into_an_offset": "a time after the last message is that message's offset",
    "test_every_position_is_the_callers": "the same",
    "test_committed_offsets_are_the_groups": "an empty queue without an offset begins at 0",
    "test_a_batch_longer_than_the_limit_is_split_and_keeps_its_order": "all of a batch have the id of its first",
    "test_bad_topics_are_refused": "another code",
    "test_a_message_is_sent_again_under_its_own_id": "its index has a message a little later",
    "test_a_batch_longer_than_the_limit": "each message of a batch has the id of the batch, too",
    "test_members_share_the_queues_as_the_broker_says": "members share the queues themselves",
    "test_popped_messages_are_gone": "nothing is popped",
    "test_a_timed_message_is_recalled": "nothing is recalled",
    "test_a_popping_group_goes_back": "nothing is popped",
    "test_status_counts_what_was_sent": "so have its consume queues",
    "test_lag_is_the_number_of_unconsumed_messages": "the same",
    "test_a_group_skips_what_has_accumulated": "the same",
}
# 5.5 records ends of transactions in batches, up to 3 s late: with a shorter timeout it would check those too.
CONF = {"transactionTimeOut": 6000, "transactionCheckInterval": 1000, "recallMessageEnable": True}
ROOM = ["-XX:MaxDirectMemorySize=512m"]
"""Each thread that reads a timed or popped message keeps 4 MiB."""
FILES_FOR_4_9 = (
    "test_lite_pull_consumer.py",
    "producing/test_producer.py",
    "test_pull_consumer.py",
    "test_push_consumer.py",
    "test_push_consumer_life.py",
    "test_ordered_consumer.py",
    "test_message_stream.py",
    "values/test_namespaces.py",
    "test_when_and_where.py",
    "test_leaving_early.py",
    "admin/test_clusters.py",
    "admin/test_messages.py",
    "test_exchange.py",
)
"""Sending, consuming, leaving and administration; the others ask for what 4.9 does not have or does otherwise."""


def words(side: str) -> list[str]:
    if side == "official-5.5":
        return [str(TESTS)]
    names = {Path(name).name for name in FILES_FOR_4_9}
    files = [str(path) for path in sorted(TESTS.rglob("test_*.py")) if path.name in names]
    assert len(files) == len(names), "a name is no file's, or that of two"
    return [*files, "-k", " and ".join(f"not {name}" for name in ANSWERED_OTHERWISE_BY_4_9)]


@ON_DEMAND
@pytest.mark.timeout(LIMIT_SECONDS + 60)
@pytest.mark.parametrize(("side", "at_least"), [("official-4.9", 100), ("official-5.5", 140)])
def test_client_suite_passes(fresh_server: StartServer, side: str, at_least: int) -> None:
    assert passed(fresh_server(side, broker_conf=CONF, java_opts=ROOM), *words(side)) >= at_least


@pytest.mark.parametrize("side", [pytest.param("official-4.9", marks=ON_DEMAND), "official-5.5"])
def test_certificates_of_both_sides_are_checked(fresh_server: StartServer, side: str) -> None:
    server = fresh_server(side, java_opts=tls_options())
    exchange = [str(TESTS / "test_exchange.py"), "-k", "another_way and certificates"]
    assert passed(server, *exchange, POCKETMQ_TEST_CERTIFICATES="yes") == 1


def tls_options() -> list[str]:
    """Of a server that shows a certificate and wants one; plain connections stay possible."""
    files = {"certPath": "server.pem", "keyPath": "server.key", "trustCertPath": "ca.pem"}
    options: dict[str, str | Path] = {f"server.{key}": FILES / file for key, file in files.items()}
    options |= {
        "test.mode.enable": "false",
        "server.need.client.auth": "require",
        "server.authClient": "true",
    }
    # The broker is a client of the name server: it must show and check certificates too.
    options |= {"enable": "true", "client.authServer": "true", "client.trustCertPath": FILES / "ca.pem"}
    options |= {"client.certPath": FILES / "client.pem", "client.keyPath": FILES / "client.key"}
    return [f"-Dtls.{key}={value}" for key, value in options.items()]


def passed(server: Server, *chosen: str, **environment: str) -> int:
    """How many of the chosen tests passed; none failed."""
    with Running(
        server.namespace,
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no", *chosen],
        server.home / "run" / "client-suite.out",
        name="tests/client",
        env=clean_environment(POCKETMQ_TEST_NAMESRV=NAMESRV_ADDR, CI="true", **environment),
        cwd=ROOT,
    ) as suite:
        suite.wait_for(r"^\d.* in [\d.]+s", LIMIT_SECONDS)
        assert suite.process.wait(10) == 0, suite.output[-6000:]
        found = re.search(r"(\d+) passed", suite.output)
    assert found is not None
    return int(found[1])
