"""Opens the key management service that `spark.snaploom.skipping.kms` names.

The setting is a URL whose scheme names the service: `vault+https://vault:8200/v1/transit`. Services
are registered in the entry-point group `snaploom.skipping.kms`: the name is the scheme, the value a
function from the rest of the URL to a `KeyService`. Keys never stand in the setting.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import cast

from snaploom.errors import KeyUnavailable
from snaploom.skipping.core.registrations import load_registered
from snaploom.skipping.formats.encryption import ServiceKeys
from snaploom.skipping.formats.keys import KeyService, ParquetKeys

SETTING = "spark.snaploom.skipping.kms"
"""Spark setting with the URL; empty for none."""

ENTRY_POINTS = "snaploom.skipping.kms"
"""Entry-point group of services."""

Opening = Callable[[str], KeyService]
"""From the rest of the URL after `<scheme>+` to the service."""


def open_keys(url: str) -> ParquetKeys | None:
    """Keys of the service that a setting names; None when it is empty.

    Raises:
        KeyUnavailable: no such service is registered here.
        IndexNotPossible: its code cannot be loaded.
    """
    if not url:
        return None
    scheme, _, rest = url.partition("+")
    entries = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if scheme not in entries:
        raise KeyUnavailable(
            f"{SETTING} names a key management service that is not registered here",
            found=f"{scheme}+URL" if rest else "no name before a +",
            expected=", ".join(f"{name}+URL" for name in sorted(entries)) or "none is registered",
            hint=f"install the package that registers it in the entry-point group {ENTRY_POINTS}",
        )
    opening = cast(Opening, load_registered(entries[scheme], "the key management service"))
    return ServiceKeys(opening(rest))
