"""Sources and sink in a session of Spark Connect: the client has no JVM and no Spark context."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pocketmq.pipeline.errors import NoJavaError
from pocketmq.testing import EmbeddedServer, RocketMQ

pytest.importorskip("pyspark")
pytest.importorskip("grpc", reason="the client of Spark Connect needs grpcio, grpcio-status and pandas")
pytest.importorskip("pandas", reason="the client of Spark Connect needs pandas")

from pocketmq.pipeline.session.java import find_java

from ports import fixed_port
from spark.standalone import LIMIT_SECONDS, environment, spark_daemon

pytestmark = [pytest.mark.on_demand, pytest.mark.timeout(600)]

CLIENT = """
import sys
from pocketmq.pipeline import pocketmq_session
remote, address, topic, store, folder = sys.argv[1:]
spark = pocketmq_session("client", master=remote)
rows = spark.createDataFrame([(f"m{n}",) for n in range(5)], "body string")
rows.write.format("rocketmq").mode("append").option("nameServer", address).option("topic", topic).save()
options = {"nameServer": address, "subscribe": topic, "startingOffsets": "earliest"}
read = spark.read.format("rocketmq").options(**options).load()
print("READ", sorted(bytes(row.body).decode() for row in read.select("body").collect()))
print("STORED", spark.read.format("rocketmq-store").option("topics", topic).load(store).count())
stream = spark.readStream.format("rocketmq").options(**options).load().selectExpr("cast(body as string) text")
query = stream.writeStream.format("parquet").option("path", folder + "/rows")
query = query.option("checkpointLocation", folder + "/checkpoint").trigger(availableNow=True).start()
query.awaitTermination()
print("STREAMED", spark.read.parquet(folder + "/rows").count())
spark.stop()
"""


def test_topics_and_stores_are_read_streamed_and_written_through_a_spark_connect_server(
    tmp_path: Path,
) -> None:
    try:
        find_java()
    except NoJavaError as missing:
        pytest.skip(str(missing))
    port = fixed_port()
    env: dict[str, Any] = environment() | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    (tmp_path / "log4j2.properties").write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.stdout.ref = console\nappender.console.type = Console\n"
        "appender.console.name = console\nappender.console.layout.type = PatternLayout\n"
        "appender.console.layout.pattern = %p %c{1}: %m%n\n"
    )
    server = [
        *("org.apache.spark.deploy.SparkSubmit", "--master", "local[2]"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.ui.enabled=false"),
        *("--conf", "spark.driver.memory=1g", "spark-internal"),
    ]
    store = tmp_path / "store"
    with (
        EmbeddedServer(store=store) as broker,
        spark_daemon(
            server, env | {"SPARK_CONF_DIR": str(tmp_path)}, tmp_path / "server.out", "Connect server started"
        ),
    ):
        topic = RocketMQ(broker).topic("T", queues=2)
        words = [f"sc://127.0.0.1:{port}", broker.namesrv_addr, topic, str(store), str(tmp_path)]
        client_env = {name: text for name, text in env.items() if name != "JAVA_HOME"}
        ran = subprocess.run(
            [sys.executable, "-c", CLIENT, *words],
            capture_output=True,
            text=True,
            env=client_env,
            check=False,
            timeout=LIMIT_SECONDS,
        )
    printed = ran.stdout + ran.stderr[-3000:] + (tmp_path / "server.out").read_text()[-2000:]
    assert "READ ['m0', 'm1', 'm2', 'm3', 'm4']" in ran.stdout, printed
    assert "STORED 5" in ran.stdout, printed
    assert "STREAMED 5" in ran.stdout, printed
