"""Options of the connection to OpenSearch, of reading and of writing, parsed once.

Names and defaults are those of Flint's `spark.datasource.flint.*` settings, without that prefix.
Beyond Flint's: `username` and `password` for auth basic (Flint's `auth.username` and
`auth.password` are aliases), `service`, `ca_file` and `timeout_seconds`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from snaploom.errors import StatementInvalid

DEFAULT_PORTS = {"http": 80, "https": 443}
"""Meaning of port -1."""

_SYNONYMS = {"auth.username": "username", "auth.password": "password"}
_TRUTHS = {"true": True, "false": False}

T = TypeVar("T")


class Auth(StrEnum):
    """Authentication; a copy of the model's, which workers of Python need not import."""

    NOAUTH = "NOAUTH"
    """Not at all."""
    BASIC = "BASIC"
    """User name and password."""
    SIGV4 = "SIGV4"
    """Signed requests of AWS."""


_AUTH_NAMES = {
    "false": Auth.NOAUTH,
    "noauth": Auth.NOAUTH,
    "basic": Auth.BASIC,
    "sigv4": Auth.SIGV4,
}


class RefreshPolicy(StrEnum):
    """Time at which written documents become visible to searches; values are OpenSearch's."""

    NONE = "false"
    """Whenever OpenSearch refreshes, within a second unless that is configured."""
    IMMEDIATE = "true"
    """At once."""
    WAIT_UNTIL = "wait_for"
    """The write waits until it is visible."""


@dataclass(frozen=True)
class OpenSearchOptions:
    """Options of a client. Printing them shows no password."""

    host: str = "localhost"
    """Host name or address."""
    port: int = 9200
    """Port; -1 for the protocol's own."""
    scheme: str = "http"
    """`http` or `https`."""
    auth: Auth = Auth.NOAUTH
    """Method of authentication."""
    region: str = "us-west-2"
    """Region, for SIGV4."""
    service: str = "es"
    """Service that requests are signed for: `es`, or `aoss` for serverless."""
    username: str = field(default="", repr=False)
    """User name, for BASIC."""
    password: str = field(default="", repr=False)
    """Password, for BASIC."""
    ca_file: str = ""
    """Certificates of the authorities that may sign for an https server, as a file in PEM; empty:
    those of SSL_CERT_FILE or SSL_CERT_DIR, else the public ones."""
    id_name: str = ""
    """Column whose value becomes the document's id; empty: ids are made up."""
    ignore_id_column: bool = False
    """Whether that column is left out of the document."""
    batch_size: int = 1000
    """Documents in one bulk request."""
    refresh_policy: RefreshPolicy = RefreshPolicy.NONE
    """Visibility of written documents."""
    scroll_size: int = 100
    """Documents in one page of a search."""
    timeout_seconds: float = 60.0
    """Maximum duration of one request."""

    @property
    def uri(self) -> str:
        """URI for people, without secrets."""
        port = DEFAULT_PORTS[self.scheme] if self.port == -1 else self.port
        return f"{self.scheme}://{self.host}:{port}"


OPTION_NAMES = {
    "host": "host",
    "port": "port",
    "scheme": "scheme",
    "auth": "auth",
    "region": "region",
    "service": "service",
    "username": "username",
    "password": "password",
    "ca_file": "ca_file",
    "write.id_name": "id_name",
    "ignore.id_column": "ignore_id_column",
    "write.batch_size": "batch_size",
    "write.refresh_policy": "refresh_policy",
    "refresh_policy": "refresh_policy",
    "read.scroll_size": "scroll_size",
    "timeout_seconds": "timeout_seconds",
}
"""Field of `OpenSearchOptions` by the option's name (Flint's page writes `refresh_policy` both
ways)."""


def parse_options(options: Mapping[str, str]) -> OpenSearchOptions:
    """Parse options; names are compared without case."""
    values: dict[str, str] = {}
    for name, value in options.items():
        lowered = name.lower()
        known = OPTION_NAMES.get(_SYNONYMS.get(lowered, lowered))
        if known is None:
            raise StatementInvalid(
                f"there is no option {name!r} of the data source flint",
                found=name,
                expected=", ".join(OPTION_NAMES),
            )
        values[known] = value
    parsed = OpenSearchOptions(
        host=values.get("host", "localhost"),
        port=_number("port", values.get("port", "9200"), -1, 65535),
        scheme=_one_of("scheme", values.get("scheme", "http"), {s: s for s in DEFAULT_PORTS}),
        auth=_one_of("auth", values.get("auth", "false"), _AUTH_NAMES),
        region=values.get("region", "us-west-2"),
        service=values.get("service", "es"),
        username=values.get("username", ""),
        password=values.get("password", ""),
        ca_file=values.get("ca_file", ""),
        id_name=values.get("id_name", ""),
        ignore_id_column=_one_of(
            "ignore.id_column", values.get("ignore_id_column", "false"), _TRUTHS
        ),
        batch_size=_number("write.batch_size", values.get("batch_size", "1000"), 1, 100_000),
        refresh_policy=_one_of(
            "write.refresh_policy", values.get("refresh_policy", "false"), _REFRESH_POLICIES
        ),
        scroll_size=_number("read.scroll_size", values.get("scroll_size", "100"), 1, 10_000),
        timeout_seconds=float(
            _number("timeout_seconds", values.get("timeout_seconds", "60"), 1, 3600)
        ),
    )
    check_options(parsed)
    return parsed


def check_options(options: OpenSearchOptions) -> None:
    """Refuse contradictory options."""
    if options.auth is Auth.BASIC and not (options.username and options.password):
        raise StatementInvalid(
            "auth basic needs a user",
            expected="the options username and password",
            found="no user",
            hint="set the option auth.username, or choose auth noauth",
        )
    if options.ca_file and options.scheme != "https":
        raise StatementInvalid(
            "ca_file needs the scheme https",
            found=options.scheme,
            expected="https",
            hint="set scheme to https, or leave ca_file out",
        )
    if options.port == 0:
        raise StatementInvalid(
            "port 0 is no port",
            expected="1 to 65535, or -1",
            found="0",
            hint="name the port of the server, such as 9200",
        )
    if options.ignore_id_column and not options.id_name:
        raise StatementInvalid(
            "ignore.id_column needs write.id_name",
            expected="both, or neither",
            found="ignore.id_column without it",
            hint="set write.id_name, or leave ignore.id_column out",
        )


_REFRESH_POLICIES = {
    **{policy.value: policy for policy in RefreshPolicy},
    **{policy.name.lower(): policy for policy in RefreshPolicy},
}


def _number(name: str, text: str, least: int, greatest: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value <= greatest:
        raise StatementInvalid(
            f"the option {name} is not a number that it can be",
            found=text,
            expected=f"{least} to {greatest}",
        )
    return value


def _one_of(name: str, text: str, allowed: Mapping[str, T]) -> T:
    if text.lower() not in allowed:
        raise StatementInvalid(
            f"the option {name} has no such value", found=text, expected=", ".join(allowed)
        )
    return allowed[text.lower()]
