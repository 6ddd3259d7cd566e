"""Every example of docs/client.md runs unchanged against an embedded broker."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker.node import Node

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
    assert program.endswith(LAST_LINE)
    source = program.removesuffix(LAST_LINE).replace("127.0.0.1:9876", node.namesrv_address)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(source, heading, "exec"), names)
    main: Callable[[], Coroutine[Any, Any, None]] = names["main"]
    async with asyncio.timeout(30):
        if ".run()" not in source:
            await main()
            return
        endless = asyncio.create_task(main())
        await until(lambda: endless.done() or "b'" in capsys.readouterr().out)
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
