"""Every example of docs/client.md runs unchanged against an embedded broker."""

import asyncio
import os
import re
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest
from pocketmq.broker.node import Node
from starlette.applications import Starlette

from client_waits import send
from waiting import until

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "client.md"
EXAMPLES = re.findall(
    r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.M | re.S
)
LAST_LINE = "asyncio.run(main())\n"


def test_every_block_is_a_tested_example() -> None:
    assert len(EXAMPLES) == DOCUMENT.read_text("utf-8").count("```python\n") > 8


@pytest.mark.parametrize(("heading", "program"), EXAMPLES, ids=[heading for heading, _ in EXAMPLES])
async def test_the_example_runs(
    heading: str,
    program: str,
    node: Node,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    await send(node.namesrv_address, "Orders", 4)
    source = program.removesuffix(LAST_LINE).replace("127.0.0.1:9876", node.namesrv_address)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(source, heading, "exec"), names)
    if not program.endswith(LAST_LINE):
        await serves_orders(names["app"], capsys)
        return
    main: Callable[[], Coroutine[Any, Any, None]] = names["main"]
    async with asyncio.timeout(30):
        if ".run()" not in source and "signal" not in names:
            await main()
            return
        endless = asyncio.create_task(main())
        await until(lambda: endless.done() or "b'" in capsys.readouterr().out)
        if "signal" in names:
            os.kill(os.getpid(), signal.SIGTERM)
            await endless
            return
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless


async def serves_orders(app: Starlette, capsys: pytest.CaptureFixture[str]) -> None:
    """The web application of the document: what is posted to it arrives at its listener."""
    transport = httpx.ASGITransport(app)
    async with (
        asyncio.timeout(30),
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://app") as browser,
    ):
        answer = await browser.post("/orders", content=b"posted")
        assert answer.json()["message_id"]
        await until(lambda: "posted" in capsys.readouterr().out)
