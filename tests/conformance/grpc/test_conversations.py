"""Every recorded conversation: our endpoint answers as recorded, every day; the official proxy still does, at night."""

from pathlib import Path

import pytest

from conformance.daily import DAILY
from conformance.grpc.conversations import CONVERSATIONS
from conformance.grpc.side import Conversation
from conformance.on_demand import ON_DEMAND

ALL = pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda one: one.name)


@DAILY
@ALL
async def test_ours_answers_as_the_official_proxy_did(conversation: Conversation) -> None:
    assert not (differences := conversation.differences(await conversation.with_us())), differences


@ON_DEMAND
@pytest.mark.timeout(600)
@ALL
async def test_the_official_proxy_answers_as_recorded(
    peers: None, tmp_path: Path, conversation: Conversation
) -> None:
    said = await conversation.with_the_official_proxy(tmp_path / "proxy")
    assert not (differences := conversation.differences(said)), differences
