"""Texts that come from the JVM; see `java/Wire.java`."""

from __future__ import annotations

import zlib
from base64 import b64decode

_PACKED = "packed:"


def unpacked(text: str) -> str:
    """A text as it was before the JVM packed it, or one that it sent as it is."""
    if not text.startswith(_PACKED):
        return text
    return zlib.decompress(b64decode(text.removeprefix(_PACKED))).decode()
