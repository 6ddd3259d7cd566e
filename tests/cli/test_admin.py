"""`pocketmq admin`: its table and functions agree, its answers have mqadmin's layout, a mistake is one line.

`tests/conformance/admin/test_commands.py` tests that the answers are exactly mqadmin's.
"""

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import Result
from pocketmq.cli.admin.command import command_rows
from pocketmq.cli.admin.options import parse_time_ms
from pocketmq.cli.admin.texts import file_name, java, perm_text, properties_text
from pocketmq.client.errors import ClientError
from pocketmq.protocol.message.java_strings import hash_map_order
from pocketmq.testing import EmbeddedServer, RocketMQ

from cli_runs import pocketmq, refusal

Run = Callable[..., Result]
IGNORED = {("cloneGroupOffset", "offline")}
"""Options mqadmin takes and does not look at."""


def printed(run: Run, line: str) -> str:
    result = run("admin", *line.split())
    assert result.exit_code == 0, result.output
    return str(result.stdout)


# -- the table


@pytest.mark.parametrize("name", command_rows())
def test_each_command_of_the_table_has_its_function(name: str) -> None:
    about, *options = command_rows()[name]
    module, _, function = about.need.partition(":")
    action = getattr(import_module(f"pocketmq.cli.admin.{module}"), function)
    assert inspect.iscoroutinefunction(action)
    assert list(inspect.signature(action).parameters) == ["admin", "given"]
    source = inspect.getsource(import_module(f"pocketmq.cli.admin.{module}"))
    body = inspect.getsource(action)
    for row in options:
        if (name, row.name) in IGNORED:
            continue
        asked = f'"{row.name}"' in source or "given.place()" in body
        assert asked, f"no test asks for {row.name} of {name}"


def test_the_table_lists_each_command_once_and_each_option_below_its_own() -> None:
    rows = command_rows()
    assert len(rows) >= 40
    for name, (about, *options) in rows.items():
        assert about.kind == "command"
        assert {row.kind for row in options} <= {"argument", "flag"}, name
        for row in options:
            assert row.need in ("required", "") or row.short in row.need.removeprefix("one of ").split(), name


def test_help_lists_the_commands_and_a_command_its_options() -> None:
    assert "consumerProgress" in pocketmq("admin", "-h").stdout
    shown = pocketmq("admin", "updateTopic", "-h").stdout
    assert "--readQueueNums" in shown
    assert "NAMESRV_ADDR" in shown


# -- answers


def test_a_body_is_written_to_a_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pocketmq.cli.admin.messages.BODIES", tmp_path)
    printed(run, "updateTopic -c DefaultCluster -t Bodies -r 1 -w 1")
    printed(run, "sendMessage -t Bodies -p hello")
    shown = printed(run, "queryMsgByOffset -t Bodies -b broker-a -i 0 -o 0 -f utf-8")
    path = re.search(r"^Message Body Path: +(\S+)$", shown, re.MULTILINE)
    assert path is not None
    assert Path(path[1]).read_bytes() == b"hello"
    assert Path(path[1]).parent == tmp_path
    assert shown.endswith("\n\nWARN: No Consumer")


def test_what_a_terminal_would_obey_in_a_message_is_shown(
    run: Run, server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pocketmq.cli.admin.messages.BODIES", tmp_path)
    rocketmq = RocketMQ(server)
    rocketmq.topic("Obeyed", queues=1)
    rocketmq.send("Obeyed", "red \x1b[31m\n", tags="\x1b]0;title\x07", properties={"p": "\x1b[2J"})
    for line in ("printMsg -t Obeyed", "queryMsgByOffset -t Obeyed -b broker-a -i 0 -o 0 -f utf-8"):
        shown = printed(run, line)
        assert "red \\x1b[31m\\n" in shown
        assert shown.replace("\n", "").replace("\t", "").isprintable()


# -- mistakes


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense", "127.0.0.1:99999", "127.0.0.1:port"])
def test_nobody_at_an_address_is_one_line_and_exit_code_3(run: Run, address: str) -> None:
    assert f"cannot connect to {address}" in refusal(run("admin", "brokerStatus", "-b", address), 3)


def test_the_keys_of_tools_yml_sign_and_bad_ones_are_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    keys = tmp_path / "conf" / "tools.yml"
    monkeypatch.setenv("ROCKETMQ_HOME", str(tmp_path))
    assert "TBW102" in printed(run, "topicList")
    keys.write_text("accessKey: admin\nsecretKey: secret-of-mine\n")
    assert "TBW102" in printed(run, "topicList")
    keys.write_text("accessKey: admin\n")
    assert "secret" not in refusal(run("admin", "topicList")).replace("secretKey", "")


# -- how Java writes


def test_values_are_written_as_java_writes_them() -> None:
    assert java(None) == "null"
    assert java({0: "a", "b": True}) == "{0=a, b=true}"
    assert java(["a", None]) == "[a, null]"
    assert [perm_text(perm) for perm in (0, 2, 4, 6, 7)] == ["---", "-W-", "R--", "RW-", "RWX"]


def test_properties_are_printed_in_the_order_of_their_hashes() -> None:
    """Names and order as mqadmin 5.5.0 printed them."""
    names = [
        "MSG_REGION",
        "UNIQ_KEY",
        "CLUSTER",
        "MIN_OFFSET",
        "TAGS",
        "KEYS",
        "WAIT",
        "TRACE_ON",
        "MAX_OFFSET",
    ]
    stored = names[5:] + names[:5]  # those that share a bucket keep the stored order
    assert hash_map_order(stored, 128) == names
    text = properties_text(dict.fromkeys(stored, "x"))
    assert text == "{" + ", ".join(f"{name}=x" for name in names) + "}"


def test_an_id_is_never_a_path_outside_its_folder() -> None:
    for text in ("../../etc/passwd", "..", ".", "", "a/b", "x" * 5000, "\0"):
        name = file_name(text)
        assert "/" not in name
        assert "\0" not in name
        assert name not in ("", ".", "..")
        assert len(name) <= 200


def test_times_are_read_in_three_forms() -> None:
    assert parse_time_ms("1700000000000") == 1_700_000_000_000
    assert parse_time_ms("2023-11-14#22:13:20:123") % 1000 == 123
    assert parse_time_ms("now") > 1_700_000_000_000
    for text in ("", "soon", "2023-11-14", "2023-13-14#22:13:20:123", "2023-11-14#22:13:20:x"):
        with pytest.raises(ClientError):
            parse_time_ms(text)
