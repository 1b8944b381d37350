"""The webhook's side of TLS: a certificate in files that change under it.

Kubernetes replaces the files of a mounted Secret by turning one symbolic link; others write in
place. So it is the contents that are compared, and a pair counts only when certificate and key
belong together. Connections that are open stay as they are; new ones get the new certificate.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from pathlib import Path

from snaploom_operator.certificates.wanted import expiry

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""Names of the files, as Secrets of the type `kubernetes.io/tls` have them."""
LOOK_SECONDS = 2.0
"""Time between two looks at the files. Kubernetes itself takes up to a minute to change them."""

_log = logging.getLogger(__name__)


class ServedCertificate:
    """The newest good certificate of a folder.

    Args:
        folder: where the files are, or will be.
        tell_expiry: told when it ends, in seconds since 1970; for a metric.
    """

    def __init__(self, folder: Path, tell_expiry: Callable[[float], None]) -> None:
        self._folder = folder
        self._tell_expiry = tell_expiry
        self._contents: tuple[bytes, bytes] | None = None
        self._current: ssl.SSLContext | None = None
        self.context = _context()
        """For the server; it passes every handshake on to the newest certificate."""
        self.context.sni_callback = self._choose

    @property
    def is_there(self) -> bool:
        """Whether there is any certificate yet."""
        return self._current is not None

    def look(self) -> None:
        """Take the files as they are now, where they are new and good."""
        contents = self._read()
        if contents is None or contents == self._contents:
            return
        context = _context()
        try:
            context.load_cert_chain(self._folder / CERTIFICATE, self._folder / KEY)
        except (ssl.SSLError, OSError) as error:
            # Caught between two files; the next look sees both.
            _log.warning("the certificate in %s cannot be used: %s", self._folder, error)
            return
        if contents != self._read():
            return
        self._contents, self._current = contents, context
        ends = expiry(contents[0])
        if ends is not None:
            self._tell_expiry(ends.timestamp())
        _log.info("certificate in use, until %s", ends)

    async def follow(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_SECONDS)

    def _read(self) -> tuple[bytes, bytes] | None:
        try:
            return (self._folder / CERTIFICATE).read_bytes(), (self._folder / KEY).read_bytes()
        except OSError:
            return None

    def _choose(self, connection: ssl.SSLObject, name: str | None, asked: ssl.SSLContext) -> None:
        """OpenSSL asks at every handshake, with a name or without."""
        if self._current is not None:
            connection.context = self._current


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
