"""Enables lineage where an address is configured; otherwise nothing of it is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from snaploom.models.common import now
from snaploom.plugins import lineage
from snaploom.policy.variables import KEY_VARIABLE, NAMESPACE_VARIABLE, URL_VARIABLE
from snaploom.run.runevents import Begin, EmitEvent, Warned

if TYPE_CHECKING:
    from snaploom.plugins.lineage.listener import LineageListener

# Settings of lineage, from the environment of a process.

NAMESPACE = "snaploom"
"""The namespace of our jobs where no other one is set."""
ENDPOINT = "api/v1/lineage"
"""Path at which a server takes events, unless the address has one."""


class LineageSettingsInvalid(ValueError):
    """The lineage settings are invalid; the message shows nothing of a secret."""


@dataclass(frozen=True)
class LineageSettings:
    """Destination of lineage."""

    server: str
    """Address of the server, without a path; empty for a file."""
    endpoint: str
    """Path at which it takes events."""
    file: str
    """Absolute path of the file, to which a line is added for each event; empty for a server."""
    namespace: str
    """Of our jobs."""
    key: str = field(default="", repr=False)
    """The key that the server wants; empty for none."""

    @property
    def place(self) -> str:
        """The same for people."""
        return self.file or f"{self.server}/{self.endpoint}"


def lineage_settings(environment: Mapping[str, str]) -> LineageSettings | None:
    """The settings in an environment; None where it has none."""
    text = environment.get(URL_VARIABLE, "").strip()
    if not text:
        return None
    namespace = environment.get(NAMESPACE_VARIABLE, "").strip() or NAMESPACE
    parts = urlsplit(text)
    if parts.scheme == "file" and not parts.netloc and parts.path:
        return LineageSettings("", "", parts.path, namespace)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise LineageSettingsInvalid(
            f"{URL_VARIABLE} must begin with http://, https:// or file:///"
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise LineageSettingsInvalid(
            f"{URL_VARIABLE} may have host, port and path only; a key goes into {KEY_VARIABLE}"
        )
    server = f"{parts.scheme}://{parts.netloc}"
    endpoint = parts.path.strip("/") or ENDPOINT
    return LineageSettings(server, endpoint, "", namespace, environment.get(KEY_VARIABLE, ""))


@contextmanager
def lineage_listener(
    environment: Mapping[str, str], emit: EmitEvent, is_hurried: Callable[[], bool]
) -> Iterator[Begin | None]:
    """Send the lineage of runs during the block, where the environment names a place."""
    listener = _listener(environment, emit)
    if listener is None:
        yield None
        return
    try:
        yield listener.begin
    finally:
        listener.close(is_hurried=is_hurried())


def _listener(environment: Mapping[str, str], emit: EmitEvent) -> LineageListener | None:
    def warn(message: str) -> None:
        emit(Warned(message))

    try:
        settings = lineage_settings(environment)
        if settings is None:
            return None
        open_listener = lineage.LineageListener
    except LineageSettingsInvalid as error:
        warn(f"lineage is not sent: {error}")
        return None
    except ImportError:
        warn("lineage is not sent: it needs the extra `lineage` (pip install 'snaploom[lineage]')")
        return None
    return open_listener(settings, now, warn)
