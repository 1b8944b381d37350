"""The secrets that this process has read, and texts without them or control characters."""

import base64
import json
import re
import threading
from collections.abc import Mapping
from urllib.parse import quote, quote_plus

# Escapes text from outside: control characters become their code points.

_LINES = "\n\t"
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""Controls of ASCII and of ISO 8859 (0x9b begins an escape sequence as ESC [ does), marks that
reverse the direction of text or take no place, and halves of surrogate pairs, which no terminal
can be sent: Python has them for bytes of a file's name that are no UTF-8."""


def visible(text: str) -> str:
    r"""The text on one line, with every control character as `\x1b` or `\u202e`."""
    return _UNSAFE.sub(_number, text)


def visible_lines(text: str) -> str:
    """The same, but line feeds and tabs stay: for text of ours that has several lines."""
    return _UNSAFE.sub(lambda match: match[0] if match[0] in _LINES else _number(match), text)


def json_visible(text: str) -> str:
    r"""A JSON document with the same characters escaped as JSON does, `\u009b` for one."""
    return _UNSAFE.sub(
        lambda match: match[0] if match[0] in _LINES else f"\\u{ord(match[0]):04x}", text
    )


_DRAWN = str.maketrans(
    {"├": "|", "└": "`", "│": "|", "─": "-", "█": "#", "·": ".", "×": "x", "–": "-", "…": "..."}
)
"""Characters of drawings, as `tree` of Unix draws them in ASCII."""


def in_ascii(text: str) -> str:
    r"""The text for a terminal that shows only ASCII; other characters become `\u00e9`."""
    return text.translate(_DRAWN).encode("ascii", "backslashreplace").decode()


def _number(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


# The secrets that this process has read, and texts without them.

HIDDEN = "***"
"""The replacement of a secret in a text."""
SHORTEST = 4
"""Characters of the shortest secret that is hidden in any place: shorter ones are parts of ordinary
words. Messages of a database hide its password of any length."""

OF_LIBRARIES = (
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_TOKEN", "AZURE_CLIENT_SECRET", "AZURE_STORAGE_CLIENT_SECRET",
    "GOOGLE_SERVICE_ACCOUNT_KEY", "GOOGLE_APPLICATION_CREDENTIALS_JSON", "VAULT_TOKEN",
    "SNAPLOOM_LINEAGE_API_KEY",
)  # fmt: skip
"""Environment variables that libraries, or parts of ours, take a secret from by themselves."""

_REMEMBERING = threading.Lock()
_BLANKS = re.compile(r"(\s)")
_known: list[tuple[str, ...]] = [()]
"""Every form of every secret, the longest first; one member, replaced as a whole."""


def remember_secret(secret: str, user: str = "") -> None:
    """Keep a secret out of the texts of this process from here on.

    `user` is its owner, since HTTP's basic authentication sends both together.
    """
    if len(secret) < SHORTEST:
        return
    forms = {*_forms(secret), *(_forms(f"{user}:{secret}") if user else ())}
    with _REMEMBERING:  # outputs are woven in threads: none may lose what another adds
        _known[0] = tuple(sorted(forms.union(_known[0]), key=lambda form: (-len(form), form)))


def remember_environment(environment: Mapping[str, str]) -> None:
    """Remember the secrets that libraries find in an environment by themselves."""
    for name in OF_LIBRARIES:
        remember_secret(environment.get(name, ""))


def without_secrets(text: str) -> str:
    """The text with every secret hidden, however it was encoded on its way.

    User and password in a URL are hidden too, known or not: nobody means to show them.
    """
    for form in _known[0]:
        text = text.replace(form, HIDDEN)
    if "://" not in text or "@" not in text:
        return text
    return "".join(_without_login(part) for part in _BLANKS.split(text))


def without_user(text: str) -> str:
    """A host, or a text given as one, without anything before an `@`."""
    before, sign, host = text.rpartition("@")
    return f"{HIDDEN}@{host}" if sign and before else text


def _without_login(part: str) -> str:
    """A text without blanks, and without the user and password of a URL in it."""
    scheme, sign, rest = part.partition("://")
    login, at, host = rest.rpartition("@")
    # A container of Azure stands before an @ as well, and no colon is in it.
    return f"{scheme}{sign}{HIDDEN}@{host}" if at and ":" in login else part


def _forms(secret: str) -> set[str]:
    """Return the forms of a secret in a text: as it is, escaped, or encoded."""
    data = secret.encode("utf-8", "surrogateescape")
    encoded = (base64.b64encode(data), base64.urlsafe_b64encode(data))
    return {
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        quote(data),
        quote(data, safe=""),
        quote_plus(data),
        *(form.decode() for form in encoded),
        *(form.decode().rstrip("=") for form in encoded),
    }
