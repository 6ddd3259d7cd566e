"""Signatures: equal to the official client's, keys from arguments or a file, and no text shows a secret."""

import base64
import logging
from pathlib import Path

import pytest
from pocketmq.client import AclClientRPCHook, ClientError, Producer, PullConsumer
from pocketmq.protocol.requests.offset import GetMaxOffset

from client_vectors import feature_vectors
from client_waits import Asked


def test_signatures_are_those_of_the_official_client() -> None:
    rows = feature_vectors("sign")
    assert len(rows) == 3
    for (access_key, secret_key, token, body, *words), expected in rows:
        fields = {name or "": value or "" for name, value in zip(words[::2], words[1::2], strict=True)}
        hook = AclClientRPCHook(access_key or "", secret_key or "", token)
        hook.before_request(
            "", GetMaxOffset(topic="T", queue_id=0), fields, None if body is None else base64.b64decode(body)
        )
        assert fields["Signature"] == expected
        assert fields["AccessKey"] == access_key
        assert fields.get("SecurityToken") == token


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("accessKey: user", "expected accessKey and secretKey"),
        ("- a\n- b", "expected accessKey and secretKey"),
        ("", "expected accessKey and secretKey"),
        ("accessKey: [hush", "not YAML"),
        ("\x00", "not YAML"),
    ],
)
def test_a_file_without_keys_is_refused_without_showing_its_content(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "tools.yml"
    path.write_text(text)
    with pytest.raises(ClientError, match=words) as caught:
        AclClientRPCHook.from_yaml(path)
    assert "hush" not in str(caught.value)
    with pytest.raises(ClientError, match="cannot be read"):
        AclClientRPCHook.from_yaml(tmp_path / "absent.yml")
    with pytest.raises(ClientError, match="access key"):
        AclClientRPCHook("user", "")


def test_keys_from_a_file_and_from_arguments_are_equal(tmp_path: Path) -> None:
    path = tmp_path / "tools.yml"
    path.write_text("accessKey: user\nsecretKey: 12345678\nsecurityToken: token\nother: 1\n")
    fields = {"topic": "T"}
    given = AclClientRPCHook("user", "12345678", "token").sign(dict(fields), b"body")
    assert AclClientRPCHook.from_yaml(path).sign(fields, b"body") == given


async def test_every_request_is_signed_and_no_text_has_the_secret(
    namesrv_addr: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    hook, watching = AclClientRPCHook("user", "hush-hush", "token-hush"), Asked()
    async with Producer(
        "p",
        namesrv_addr=namesrv_addr,
        hooks=[hook, watching],
        namespace_v2="N",
        enable_stream_request_type=True,
    ) as producer:
        await producer.send("T", b"x")
        await producer.send_nowait("T", b"x")
        async with PullConsumer("g", namesrv_addr=namesrv_addr, hooks=[hook, watching]) as puller:
            await puller.queues("T")
        with pytest.raises(ClientError):
            await producer.queues("Unknown")
        texts = f"{hook!r} {hook!s} {producer.settings!r} {producer._hooks.__dict__!r}"
    assert {fields["AccessKey"] for fields in watching.fields} == {"user"}
    assert all(
        fields["Signature"] == hook.sign(fields, None) for fields in watching.fields if "queueId" in fields
    )
    marks = {(fields.get("ns"), fields.get("nsd"), fields.get("ReqT")) for fields in watching.fields}
    assert marks == {("N", "true", "0"), (None, None, None)}, "the last are the puller's"
    assert {0, 17} <= {answer.code for _, answer in watching.answers}
    assert "hush" not in texts + caplog.text
