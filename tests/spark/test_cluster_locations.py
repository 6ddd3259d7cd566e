"""On a cluster: stores and journals of two brokers, an object store, and brokers behind other addresses."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ

from ports import fixed_port
from spark.conftest import IN_EACH_STORE
from spark.drivers import driver, run_job
from spark.s3_server import object_store
from spark.standalone import Standalone

COUNT = 40
WANTED = sorted([f"broker-{name}", f"{name}{number:02}"] for name in "ab" for number in range(IN_EACH_STORE))
HIDDEN = "127.9.9.9:10911"
"""An address at which no broker listens."""
PORT = fixed_port()

pytestmark = [pytest.mark.on_demand, pytest.mark.timeout(900)]


def found(
    cluster: Standalone,
    folder: Path,
    paths: Mapping[str, str],
    journals: Mapping[str, str],
    more: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    program = Path(__file__).with_name("locations_driver.py")
    env = more or {}
    settings = [f"spark.executorEnv.{name}={text}" for name, text in env.items()]
    argv = [sys.executable, str(program), cluster.url, json.dumps(paths), json.dumps(journals), *settings]
    with driver(folder / "driver.out", argv, cluster.env | env) as one:
        return one.found()


def test_the_stores_and_journals_of_two_brokers_are_one_table_for_both_workers(
    cluster: Standalone, stores: dict[str, Path], tmp_path: Path
) -> None:
    paths = {"broker-a": str(stores["a"]), "broker-b": f"file://{stores['b']}"}
    journals = {"broker-a": str(stores["journal-a"]), "broker-b": f"file://{stores['journal-b']}"}
    what = found(cluster, tmp_path, paths, journals)
    assert what["messages"] == WANTED
    assert what["sends"] == 2 * IN_EACH_STORE
    assert what["executors"] == 2


def test_stores_and_journals_are_read_from_an_object_store_by_both_workers(
    cluster: Standalone, stores: dict[str, Path], tmp_path: Path
) -> None:
    """Keys and endpoint from the executors' environment, or inside the URL: then they are not in column `file`."""
    with object_store(tmp_path) as objects:
        urls = {name: objects.upload(folder, name) for name, folder in stores.items()}
        paths = {"broker-a": urls["a"], "broker-b": objects.url_with_keys(urls["b"])}
        journals = {"broker-a": urls["journal-a"], "broker-b": objects.url_with_keys(urls["journal-b"])}
        what = found(cluster, tmp_path, paths, journals, objects.env)
    assert what["messages"] == WANTED
    assert what["sends"] == 2 * IN_EACH_STORE
    assert what["executors"] == 2
    assert {file.rpartition("/")[0] for file in what["files"]} == {
        "s3://bucket/a/commitlog",
        "s3://bucket/b/commitlog",
    }


@pytest.fixture(scope="module")
def hidden() -> Iterator[RocketMQ]:
    """A broker whose route names an address that nothing answers."""
    with EmbeddedServer(listenPort=PORT, advertise=HIDDEN) as server:
        rocketmq = RocketMQ(server)
        topic = rocketmq.topic("T", queues=2)
        rocketmq.topic("T2", queues=2)
        for number in range(COUNT):
            rocketmq.send(topic, f"m{number}", queue_id=number % 2, keys=f"k{number}")
        yield rocketmq


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ("latest", "k39"),
        ("replay --to T2", f"{COUNT} messages sent to T2"),
        ("ingest --to {folder}/t --checkpoint {folder}/c", f"{COUNT} messages of T written"),
    ],
)
def test_executors_reach_brokers_through_the_address_map(
    cluster: Standalone, hidden: RocketMQ, tmp_path: Path, words: str, printed: str
) -> None:
    job, *more = words.format(folder=tmp_path).split()
    options = ("-n", hidden.namesrv_addr, "--topics", "T")
    ran = run_job(
        cluster.env,
        "--master",
        cluster.url,
        job,
        *options,
        *more,
        "--broker-address-map",
        f"{HIDDEN}=127.0.0.1:{PORT}",
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
    assert printed in ran.stdout


def test_a_broker_that_executors_cannot_reach_is_named(cluster: Standalone, hidden: RocketMQ) -> None:
    ran = run_job(cluster.env, "--master", cluster.url, "latest", "-n", hidden.namesrv_addr, "--topics", "T")
    assert ran.returncode == 2, ran.stdout + ran.stderr[-3000:]
    *waits, line = [one for one in ran.stderr.splitlines() if one.startswith("pocketmq:")]
    assert HIDDEN in line
    assert all("trying until" in one for one in waits)
