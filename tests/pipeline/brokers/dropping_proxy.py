"""A proxy in front of a broker that drops connections after some bytes."""

import asyncio
import threading
from collections.abc import Callable

from pocketmq.pipeline.brokers.broker_client import BrokerClient
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame


class DroppingProxy:
    """A proxy that closes the connection at every n-th frame of a code, in its own thread."""

    def __init__(self, target: str, code: int, every: int) -> None:
        self._target = target
        self._code = code
        self._every = every
        self.dropped = 0
        self._seen = 0
        self._loop = asyncio.new_event_loop()
        self._ready: threading.Event = threading.Event()
        self.address = ""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(30)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        self._loop.run_forever()
        server.close()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self._target.partition(":")
        up_reader, up_writer = await asyncio.open_connection(host, int(port))
        back = asyncio.create_task(_pump(up_reader, writer))
        cutter = FrameCutter()
        try:
            while data := await reader.read(65536):
                for command in cutter.feed(data):
                    if self._is_time(command):
                        return
                    up_writer.write(encode_frame(command))
        finally:
            back.cancel()
            up_writer.close()
            writer.close()

    def _is_time(self, command: Command) -> bool:
        self._seen += command.code == self._code
        if command.code != self._code or self._seen % self._every:
            return False
        self.dropped += 1
        return True


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)


Proxied = Callable[[int, int], tuple[BrokerClient, DroppingProxy]]
