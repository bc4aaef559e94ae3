"""A bad line between workers and a broker: a proxy that swallows, delays and cuts what passes through it.

The broker gets a listener of its own for it, advertised at the port of the proxy, so that nobody finds a way around.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from stream_anon.kafka.local_broker.broker import LocalBroker, free_port

KINDS = ["hole", "deaf", "slow", "reset"]
"""Nothing passes; requests pass and answers do not; everything passes late; all connections are cut."""

_SLOW = 0.15  # seconds that each piece of a slow line waits


class Line:
    """The proxy, in a thread of its own. `state` is one of `KINDS`, or "open"."""

    def __init__(self, broker: LocalBroker) -> None:
        self.port, self._behind = free_port(), free_port()
        self.state = "open"
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        file = broker.folder / "server.properties"
        text = file.read_text().replace(",CONTROLLER://", f",LINE://127.0.0.1:{self._behind},CONTROLLER://", 1)
        text = text.replace("advertised.listeners=", f"advertised.listeners=LINE://127.0.0.1:{self.port},")
        file.write_text(text.replace("protocol.map=", "protocol.map=LINE:PLAINTEXT,"))
        threading.Thread(target=self._run, name="line", daemon=True).start()

    @property
    def bootstrap(self) -> str:
        """The address for whoever is to suffer."""
        return f"127.0.0.1:{self.port}"

    def mend(self) -> None:
        """Let everything pass again; whatever lost bytes is cut."""
        spoilt, self.state = self.state != "slow", "open"
        if spoilt:
            self._loop.call_soon_threadsafe(self._cut)

    def spoil(self, kind: str) -> None:
        """Begin a fault."""
        self.state = kind
        if kind == "reset":
            self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connect, "127.0.0.1", self.port))
        self._loop.run_until_complete(server.serve_forever())

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._behind)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, back}
        await asyncio.gather(self._pass(reader, back, "hole"), self._pass(there, writer, "hole", "deaf"))
        self._writers -= {writer, back}

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *silent: str) -> None:
        """Pass bytes on, but for those that fall into a fault."""
        with suppress(OSError):
            while data := await source.read(65_536):
                if self.state == "slow":
                    await asyncio.sleep(_SLOW)
                if self.state not in silent:
                    sink.write(data)
                    await sink.drain()
        sink.transport.abort()
