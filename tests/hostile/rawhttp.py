"""Malformed requests over TLS, which no library would send."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

PATIENCE = 30.0
"""Seconds that an answer may take on a busy machine."""


@dataclass
class RawConnection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> bytes:
        """All that comes until the other side closes, or sends nothing more for a moment."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError as error:
                return error.partial
            except ConnectionError:
                return b""

    async def is_closed(self) -> bool:
        """Whether the other side has closed it, or does so in time."""
        async with asyncio.timeout(PATIENCE):
            try:
                while await self.reader.read(65536):
                    pass
            except ConnectionError:
                pass
        return True

    async def status(self) -> int:
        """The number of the answer; 0 where the connection was closed without one."""
        parts = (await self.answer()).split(b" ", 2)
        return int(parts[1]) if len(parts) > 1 else 0


@asynccontextmanager
async def raw_connection(
    host: str, port: int, trusted: ssl.SSLContext, peer: str = "127.0.0.1"
) -> AsyncIterator[RawConnection]:
    """A connection from an address of this machine, which is closed at the end."""
    reader, writer = await asyncio.open_connection(host, port, ssl=trusted, local_addr=(peer, 0))
    try:
        yield RawConnection(reader, writer)
    finally:
        writer.close()


def request(body: bytes, *headers: str) -> bytes:
    lines = ["POST /validate HTTP/1.1", "Host: webhook", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def certificate_of(connection: RawConnection) -> bytes:
    shown: bytes = connection.writer.get_extra_info("ssl_object").getpeercert(True)
    return shown
