"""Settings of lineage, from the environment of a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from snaploom.planning.jobvariables import KEY_VARIABLE, NAMESPACE_VARIABLE, URL_VARIABLE

NAMESPACE = "snaploom"
"""The namespace of our jobs where no other one is set."""
ENDPOINT = "api/v1/lineage"
"""Where a server takes events, unless the address has a path."""


class LineageSettingsInvalid(ValueError):
    """The lineage settings are invalid; the message shows nothing of a secret."""


@dataclass(frozen=True)
class LineageSettings:
    """Where lineage is sent."""

    server: str
    """Address of the server, without a path; empty for a file."""
    endpoint: str
    """Where it takes events."""
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
    """The settings in an environment; None where it has none.

    Raises:
        LineageSettingsInvalid: the address is none, or has a user and a password.
    """
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
