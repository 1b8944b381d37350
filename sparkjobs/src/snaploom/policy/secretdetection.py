"""Secrets where none belongs: everywhere in a resource but in its credentials.

Users who may read a resource read all of its text, which also goes into plans, ConfigMaps and logs.
So every text of a resource is looked at, wherever it stands: maps of options and settings by name
and value, all others by value. Models are walked as they are; no kind has a list of its own.

A secret is recognised in two ways. By its form, which ordinary data hardly ever has: a password
in a URL, a private key, a signed token, keys of well-known services. And by its name, where a map
holds settings: `fs.s3a.secret.key` has one as its value. Column metadata, labels and annotations
describe data, of which `secret: "true"` is ordinary: there a name counts only where
it can mean nothing but a credential, and the value does not look like a word. On a laptop the file
is its user's own, so that a finding is a warning and a wrong one stops nothing; a cluster shows
resources to everybody who may read them, and refuses. No message holds a value.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from urllib.parse import unquote

from pydantic import BaseModel

from snaploom.models.base import ApiModel
from snaploom.models.common import Resource
from snaploom.models.findings import Finding
from snaploom.policy.fields import NO_TEXTS, walked_fields

SECRET_CODE = "SL138"
"""Code of a secret that stands outside of credentials: a warning here, refused by clusters."""

_PARAMETER = re.compile(r"[?;&,:({\[\s]([^=?;&,:(){}\[\]\s]+)\s*=")
_OF_A_LOGIN = re.compile(
    r"(?:.*[._])?(?:user|username|user_name|userid|uid|login|pass)"
    r"|.*(?:password|passwd|passphrase|passfile|pwd|secret|token|credential|principal).*",
    re.IGNORECASE,
)
"""Names of parameters of a JDBC URL that hold a user, or something by which one is known."""
_JDBC = "jdbc:"
_ORACLE_ADDRESS = re.compile(r"^jdbc:oracle:\w+:@", re.IGNORECASE)
"""The one `@` that stands behind no user: Oracle's addresses begin with it."""

_FORMS: Mapping[str, re.Pattern[str]] = {
    "a private key": re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"),
    "a signed token (JWT)": re.compile(
        r"\beyJ[A-Za-z0-9_-]{8,300}+\.eyJ[A-Za-z0-9_-]{8,300}+\.[A-Za-z0-9_-]{8}"
    ),
    "an access key of AWS": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a key of Google": re.compile(r"\bAIza[0-9A-Za-z_-]{35}"),
    "a token of GitHub, GitLab or Slack": re.compile(
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{40}|glpat-[A-Za-z0-9_-]{20}"
        r"|xox[abprs]-[A-Za-z0-9-]{10})"
    ),
    "a key of an Azure account": re.compile(r"AccountKey=[A-Za-z0-9+/]{40}"),
}
"""Forms of secrets, in any place. None repeats without a bound: texts are hostile."""
_MARKS = re.compile(
    "://|PRIVATE KEY|eyJ|A[KS]IA|AIza|gh[pousr]_|github_pat_|glpat-|xox|AccountKey="
)
"""Every secret of these forms, and every URL, contains one of them. Most texts contain none, and
one search for all takes a fifth of the time of searches for each."""
_HOST_AND_PORT = re.compile(r"(?:\[[^\]]*\]|[^:]*)(?::(?:[0-9]*|port))?", re.IGNORECASE)
"""The part before the path of a URL without a user: `key:a/b@bucket` begins otherwise."""
_SIGNATURES = frozenset({"sig", "signature", "x-amz-security-token", "x-amz-signature"})
"""Parameters of a URL that grant access to every reader of the URL."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_CREDENTIALS = frozenset({"password", "passwd", "passphrase", "passcode"})
"""Words that can mean nothing but a credential."""
_SECRETS = _CREDENTIALS | {"pass", "pwd", "secret", "token", "credential", "credentials"}
"""Words that mean one as the last of a setting's name."""
_KINDS_OF_KEY = frozenset(
    {"access", "account", "api", "auth", "client", "encryption", "master", "private", "secret",
     "shared", "signing", "storage"}
)  # fmt: skip
"""Words in front of `key` with which it is a secret."""
_ENDINGS = frozenset({"base64", "bytes", "list", "plain", "plaintext", "text", "value"})
"""Words that may follow."""
_DESCRIPTIONS = frozenset({"metadata", "labels", "annotations", "node_selector"})
"""Fields whose maps describe, rather than set."""
_PLAIN = re.compile(r"\s*+|true|false|yes|no|none|null|-?[0-9.]+", re.IGNORECASE)
"""Values that are no secret under any name: answers and numbers."""
_OF_CATALOG = re.compile(r"spark\.sql\.catalog\..*=env:[A-Za-z_][A-Za-z0-9_]*")
"""Settings of catalogs, with a variable of the run as their value."""
_LONGEST_LOOKED_AT = 8192
"""Characters of one text: more than any setting has. Queries are longer, and hold no settings."""


def names_a_login(url: str) -> bool:
    """Whether a user, a password or another secret stands in a JDBC URL, or may.

    In any form: before the host, as a parameter, or as a parameter whose name is written in percent
    signs, which MySQL's driver decodes.
    """
    return any(_names_a_login(text) for text in (url, unquote(url)))


def secret_form(text: str) -> str:
    """The kind of secret in a text, for people; empty for none."""
    shown = text[:_LONGEST_LOOKED_AT]
    if shown[: len(_JDBC)].casefold() == _JDBC:
        return "a user or password in a JDBC URL" if names_a_login(shown) else ""
    if _MARKS.search(shown) is None:
        return ""
    form = next((kind for kind, each in _FORMS.items() if each.search(shown)), "")
    return form or next((kind for piece in shown.split() if (kind := _of_url(piece))), "")


def _of_url(piece: str) -> str:
    """The kind of secret in a URL; empty for none, and for anything else than a URL."""
    if "://" not in piece:
        return ""
    for rest in piece.split("://")[1:] if "@" in piece else ():
        if _has_password(rest):
            return "a password in a URL"
    pairs = (parameter.partition("=") for parameter in piece.partition("?")[2].split("&"))
    for name, _, value in pairs:
        if (name.casefold() in _SIGNATURES and value) or names_a_secret(name, value):
            return "a signature or password as a parameter of a URL"
    return ""


def _has_password(rest: str) -> bool:
    """Whether a password stands in a URL, given without its scheme; keys of AWS have a `/`."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    login = authority.rpartition("@")[0]
    if login:
        password = login.partition(":")[2]
        return bool(password) and not _is_reference(password)
    hosts = authority.split(",")
    is_cut = any(_HOST_AND_PORT.fullmatch(host) is None for host in hosts)
    return is_cut and "@" in rest and not _is_reference(authority)


def _is_reference(value: str) -> bool:
    """Whether a value stands for another, as `${PASSWORD}` and `{{ password }}` do."""
    return "$" in value or "{" in value


def names_a_secret(name: str, value: str, *, is_description: bool = False) -> bool:
    """Whether a setting of this name and value is a secret.

    `secretKey`, `secret.key` and `SECRET_KEY` are alike. With `is_description`, the map describes
    data rather than setting anything.
    """
    if _PLAIN.fullmatch(value) or _is_reference(value) or _OF_CATALOG.fullmatch(f"{name}={value}"):
        return False
    words = [word.casefold() for word in _WORD.findall(name)]
    while words and (words[-1] in _ENDINGS or words[-1].isdecimal()):
        words.pop()
    keys = (b == "key" and a in _KINDS_OF_KEY for a, b in pairwise(words))
    if is_description:
        is_named = bool(words) and (words[-1] in _CREDENTIALS or words[-2:] == ["secret", "key"])
        is_word = re.fullmatch("[A-Za-z_-]*", value) is not None or len(value.split()) > 1
        return is_named and len(value) >= 6 and not is_word
    return bool(words) and (words[-1] in _SECRETS or any(keys))


def secret_findings(resource: Resource) -> tuple[Finding, ...]:
    """A warning for every secret that stands in a resource outside of its credentials."""
    return tuple(
        resource.finding(
            SECRET_CODE,
            path,
            f"this looks like {kind}, visible to everybody who may read the resource",
            found="not shown",
            expected="a text without secrets",
        )
        for path, kind in _found(resource, "")
    )


def _found(model: BaseModel, path: str) -> Iterator[tuple[str, str]]:
    values = vars(model)
    named = values.get("name")
    elsewhere = model.secrets_checked_elsewhere if isinstance(model, ApiModel) else ()
    for name, shown in walked_fields(type(model)):
        value = values[name]
        if type(value) in NO_TEXTS or name in elsewhere:
            continue
        place = f"{path}.{shown}" if path else shown
        if name == "value" and isinstance(value, str) and isinstance(named, str):
            yield from _of_pair(named, value, place, is_description=False)
        else:
            yield from _of_value(value, place, name in _DESCRIPTIONS)


def _of_value(value: object, path: str, is_description: bool) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        kind = secret_form(value)
        if kind:
            yield path, kind
    elif isinstance(value, BaseModel):
        yield from _found(value, path)
    elif isinstance(value, tuple | list):
        for index, inner in enumerate(value):
            yield from _of_value(inner, f"{path}[{index}]", is_description)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            place = f"{path}.{name}"
            if isinstance(inner, str):
                yield from _of_pair(str(name), inner, place, is_description=is_description)
            else:
                yield from _of_value(inner, place, is_description)


def _of_pair(
    name: str, value: str, path: str, *, is_description: bool
) -> Iterator[tuple[str, str]]:
    kind = secret_form(value)
    if kind:
        yield path, kind
    elif secret_form(name):
        yield path.removesuffix(f".{name}"), secret_form(name)
    elif names_a_secret(name, value, is_description=is_description):
        yield path, "the value of a secret setting"


def _names_a_login(text: str) -> bool:
    parameters = _PARAMETER.findall(text)
    is_given = any(_OF_A_LOGIN.fullmatch(name) for name in parameters)
    return is_given or "@" in _ORACLE_ADDRESS.sub("", text)
