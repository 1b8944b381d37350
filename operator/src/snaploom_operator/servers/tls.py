"""Hot reload of a server's certificate files.

Kubernetes replaces the files of a mounted Secret by switching a symbolic link; other tools write in
place. So contents are compared, and a pair is used only if certificate and key match. Open
connections keep their certificate; new ones get the new one.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from pathlib import Path

from snaploom_operator.certificates.rotation import expiry

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""File names, as in Secrets of the type `kubernetes.io/tls`."""
RELOAD_SECONDS = 2.0
"""Interval of checking the files. Kubernetes itself takes up to a minute to update them."""

_log = logging.getLogger(__name__)


class ServedCertificate:
    """The newest valid certificate of a folder.

    Args: folder: folder of the files; it may be empty at first. on_expiry: called with the expiry
        in seconds since 1970, for a metric.
    """

    def __init__(self, folder: Path, on_expiry: Callable[[float], None]) -> None:
        self._folder = folder
        self._on_expiry = on_expiry
        self._contents: tuple[bytes, bytes] | None = None
        self._current: ssl.SSLContext | None = None
        self.context = _context()
        """TLS context of the server; every handshake uses the newest certificate."""
        self.context.sni_callback = self._choose

    @property
    def is_there(self) -> bool:
        """Whether a certificate was loaded."""
        return self._current is not None

    def reload(self) -> None:
        """Load the files if they changed and are valid."""
        contents = self._read()
        if contents is None or contents == self._contents:
            return
        context = _context()
        try:
            context.load_cert_chain(self._folder / CERTIFICATE, self._folder / KEY)
        except (ssl.SSLError, OSError) as error:
            # Read between two writes; the next check reads both.
            _log.warning("cannot load the certificate in %s: %s", self._folder, error)
            return
        if contents != self._read():
            return
        self._contents, self._current = contents, context
        ends = expiry(contents[0])
        if ends is not None:
            self._on_expiry(ends.timestamp())
        _log.info("certificate in use, until %s", ends)

    async def follow(self) -> None:
        """Reload periodically, until cancelled."""
        while True:
            self.reload()
            await asyncio.sleep(RELOAD_SECONDS)

    def _read(self) -> tuple[bytes, bytes] | None:
        try:
            return (self._folder / CERTIFICATE).read_bytes(), (self._folder / KEY).read_bytes()
        except OSError:
            return None

    def _choose(self, connection: ssl.SSLObject, name: str | None, asked: ssl.SSLContext) -> None:
        """Callback of every handshake, with or without a server name."""
        if self._current is not None:
            connection.context = self._current


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
