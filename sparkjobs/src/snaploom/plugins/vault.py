"""A key management service over HTTP: the transit engine of HashiCorp Vault."""

import base64
import binascii
import json
import os
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from urllib.parse import quote, urlsplit

from urllib3.exceptions import HTTPError

from snaploom.confidential import remember_secret
from snaploom.endpoints import EndpointRefused, origin_of, pools_of, refuse_host
from snaploom.errors import KeyUnavailable
from snaploom.policy.addresses import declared_rules

# Key management over HTTP: the transit engine of HashiCorp Vault, or a compatible service.

TOKEN_VARIABLE = "VAULT_TOKEN"
"""Environment variable with the token; Vault's own."""

TOKEN_FILE_VARIABLE = "VAULT_TOKEN_FILE"
"""Environment variable with the path of a file with the token; goes first."""

TIMEOUT_SECONDS = 10.0
"""Longest wait for one answer: a query that cannot have its key runs unpruned, and should not
wait long for that."""

_MOST_BYTES = 1024 * 1024
"""Longest answer; a wrapped key takes a hundred bytes."""


class VaultKeyService:
    """Keys of a transit engine."""

    def __init__(self, url: str, environment: Mapping[str, str] = os.environ) -> None:
        """Name an engine by its URL, such as `https://vault:8200/v1/transit`."""
        rules = declared_rules(environment)
        try:
            host, port, is_secure = origin_of(url)
            refuse_host(host, port, rules)
        except EndpointRefused as error:
            raise _no_server(error) from None
        pools = pools_of(rules, _MOST_BYTES)
        pool = pools.secure if is_secure else pools.plain
        self._pool = pool(host, port, timeout=TIMEOUT_SECONDS, retries=False)
        self._path = urlsplit(url).path.rstrip("/")
        self._environment = environment

    def wrap(self, label: str, key: bytes) -> str:
        plain = base64.b64encode(key).decode("ascii")
        return self._ask("encrypt", label, {"plaintext": plain}, "ciphertext")

    def unwrap(self, label: str, wrapped: str) -> bytes:
        answer = self._ask("decrypt", label, {"ciphertext": wrapped}, "plaintext")
        try:
            return base64.b64decode(answer, validate=True)
        except binascii.Error:
            raise _refused(label, "an answer that is no key") from None

    def _ask(self, verb: str, label: str, question: Mapping[str, str], field: str) -> str:
        # Causes are not kept: answers of the service may quote the request.
        try:
            found = self._pool.urlopen(
                "POST",
                f"{self._path}/{verb}/{quote(label, safe='')}",
                json.dumps(question),
                {"X-Vault-Token": self._token(label), "Content-Type": "application/json"},
            )
        except EndpointRefused as error:
            raise _no_server(error) from None
        except (OSError, HTTPException, HTTPError) as error:
            raise _refused(label, f"no answer ({type(error).__name__})") from None
        if found.status != HTTPStatus.OK:
            raise _refused(label, f"HTTP status {found.status}")
        try:
            answer = json.loads(found.data)
        except (ValueError, RecursionError):
            raise _refused(label, "an answer that is no JSON") from None
        data = answer.get("data") if isinstance(answer, dict) else None
        value = data.get(field) if isinstance(data, dict) else None
        if not isinstance(value, str):
            raise _refused(label, f"an answer without {field}")
        return value

    def _token(self, label: str) -> str:
        path = self._environment.get(TOKEN_FILE_VARIABLE, "")
        try:
            token = Path(path).read_text(encoding="utf-8") if path else None
        except (OSError, UnicodeDecodeError):
            raise _refused(label, "a token file that cannot be read") from None
        token = (token or self._environment.get(TOKEN_VARIABLE, "")).strip()
        if not token or not token.isascii() or not token.isprintable():
            raise _refused(label, f"no token in {TOKEN_FILE_VARIABLE} or {TOKEN_VARIABLE}")
        remember_secret(token)
        return token


def _refused(label: str, found: str) -> KeyUnavailable:
    return KeyUnavailable(
        f"the key management service gave no key for the label {label}",
        found=found,
        hint="look at its address, the token's policy, and whether it has a key of that name",
    )


def _no_server(error: EndpointRefused) -> KeyUnavailable:
    return KeyUnavailable(
        f"the key management service cannot be asked: {error.message}",
        found=error.found,
        expected=error.expected or "https://host:port/v1/transit",
        hint=error.hint,
    )
