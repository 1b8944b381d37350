"""Whole JDBC URLs: who allows them, and what must not stand in one.

A URL is written by whoever writes the source, kept in the cluster as it is, and repeated by drivers
in messages; so that user and password never stand in it, whatever its form: before the host, as a
parameter, or as a parameter whose name is written in percent signs, which MySQL's driver decodes.
What else it may ask of a driver is for whoever allows URLs to trust.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

ALLOW_URL_VARIABLE = "SNAPLOOM_ALLOW_JDBC_URL"
"""Environment variable of a process that reads databases; `true` allows URLs."""

_PARAMETER = re.compile(r"[?;&,:({\[\s]\s*([^=?;&,:(){}\[\]\s]+)\s*=")
_OF_A_LOGIN = re.compile(
    r"(?:.*[._])?(?:user|username|user_name|userid|uid|login|pass)"
    r"|.*(?:password|passwd|passphrase|passfile|pwd|secret|token|credential|principal).*",
    re.IGNORECASE,
)
"""Names of parameters that hold a user, or something by which one is known."""
_ORACLE_ADDRESS = re.compile(r"^jdbc:oracle:\w+:@", re.IGNORECASE)
"""The one `@` that stands behind no user: Oracle's addresses begin with it."""


def names_a_login(url: str) -> bool:
    """Whether a user, a password or another secret stands in a URL, or may."""
    return any(_names_a_login(text) for text in (url, unquote(url)))


def _names_a_login(text: str) -> bool:
    parameters = _PARAMETER.findall(text)
    is_given = any(_OF_A_LOGIN.fullmatch(name) for name in parameters)
    return is_given or "@" in _ORACLE_ADDRESS.sub("", text)
