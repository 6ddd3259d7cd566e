"""A local session gets a quiet log configuration, unless the user has configured Spark's log."""

from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from pocketmq.pipeline.spark.session.settings import log_options, settings_for

NOWHERE = {"SPARK_HOME": "/nothing"}


def test_a_local_session_is_given_the_quiet_configuration() -> None:
    option = log_options(NOWHERE)
    assert settings_for("local[2]", log=option)["spark.driver.extraJavaOptions"].split().count(option) == 1
    name, _, url = option.partition("=")
    assert name == "-Dlog4j2.configurationFile"
    assert "NativeCodeLoader" in Path(url2pathname(urlsplit(url).path)).read_text(encoding="utf-8")


def test_a_cluster_s_log_is_left_alone() -> None:
    assert settings_for("spark://h:1", log=log_options(NOWHERE)) == {}


@pytest.mark.parametrize(
    "environ",
    [
        {"LOG4J_CONFIGURATION_FILE": "/mine.xml"},
        {"JAVA_TOOL_OPTIONS": "-Dlog4j2.configurationFile=/mine.xml"},
        {"SPARK_SUBMIT_OPTS": "-Dlog4j.configurationFile=/mine.xml"},
        {"PYSPARK_SUBMIT_ARGS": "--driver-java-options -Dlog4j2.debug pyspark-shell"},
    ],
)
def test_an_environment_that_configures_the_log_wins(environ: dict[str, str]) -> None:
    assert log_options({**NOWHERE, **environ}) == ""


@pytest.mark.parametrize("name", ["log4j2.properties", "log4j2.xml", "log4j2-test.yaml"])
def test_a_log_file_among_spark_s_settings_wins(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / f"{name}.template").touch()
    for environ in ({"SPARK_CONF_DIR": str(folder)}, {"SPARK_HOME": str(tmp_path)}):
        assert log_options(environ)
    (folder / name).touch()
    for environ in ({"SPARK_CONF_DIR": str(folder)}, {"SPARK_HOME": str(tmp_path)}):
        assert log_options(environ) == ""


def test_java_options_for_the_log_in_spark_s_defaults_win(tmp_path: Path) -> None:
    defaults = tmp_path / "spark-defaults.conf"
    defaults.write_text("spark.driver.memory 2g\n")
    assert log_options({"SPARK_CONF_DIR": str(tmp_path)})
    defaults.write_text("spark.driver.extraJavaOptions -Dlog4j2.configurationFile=/mine.xml\n")
    assert log_options({"SPARK_CONF_DIR": str(tmp_path)}) == ""
