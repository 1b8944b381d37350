"""OpenSearch as a base of skipping indexes: `opensearch://host:9200?scheme=https&auth=basic`.

What stands behind `?` are options of the data source `flint`, and `form=SEED` for early names
and metadata. User and password are never part of a URI, which is printed and logged: for auth
basic they are read from the environment, from the variables that `username_variable` and
`password_variable` name.
"""

from __future__ import annotations

import hashlib
import os
from urllib.parse import parse_qsl, urlsplit

from snaploom.confidential import remember_secret
from snaploom.errors import StatementInvalid
from snaploom.interop.flint.fields import OWN
from snaploom.interop.flint.metadata import FlintForm
from snaploom.interop.opensearch.client import OpenSearchClient
from snaploom.interop.opensearch.options import (
    OpenSearchOptions,
    parse_options,
)
from snaploom.interop.opensearch.shardreader import read_hits
from snaploom.interop.opensearch.store import OWN_INDEX, OpenSearchIndexStore
from snaploom.skipping.formats.keys import ParquetKeys
from snaploom.skipping.stores.address import PASSWORD_VARIABLE, USERNAME_VARIABLE
from snaploom.skipping.stores.port import IndexStore

USERNAME, PASSWORD = "SNAPLOOM_OPENSEARCH_USERNAME", "SNAPLOOM_OPENSEARCH_PASSWORD"
"""Environment variables for auth basic."""

_PAGE = "1000"


class OpenSearchBase:
    """A cluster that holds skipping indexes; behind the port `IndexBase`."""

    def __init__(self, options: OpenSearchOptions, form: FlintForm = FlintForm.TODAY) -> None:
        self._client = OpenSearchClient(options)
        self._form = form

    @property
    def uri(self) -> str:
        """The server."""
        return self._client.options.uri

    def index(self, target_uri: str) -> OpenSearchIndexStore:
        """The store of a target's index; its state is found by the hash of the target's URI."""
        return self._store(hashlib.sha256(target_uri.encode()).hexdigest())

    def indexes(self) -> list[IndexStore]:
        """Stores of all indexes that have a state."""
        if not self._client.exists(OWN_INDEX):
            return []
        self._client.refresh(OWN_INDEX)
        query = {"bool": {"must_not": [{"exists": {"field": f"{OWN}.segment"}}]}}
        hits = read_hits(self._client, OWN_INDEX, query, ["index"])
        return [self._store(name) for name in sorted(hit.document_id for hit in hits)]

    def _store(self, key: str) -> OpenSearchIndexStore:
        return OpenSearchIndexStore(self._client, form=self._form, key=key)


def open_opensearch_base(uri: str, keys: ParquetKeys | None) -> OpenSearchBase:
    """Open the base at a URI, else `StatementInvalid`; `keys` are unused: nothing is encrypted."""
    parts = urlsplit(uri)
    if not parts.hostname or parts.username is not None or parts.path.strip("/"):
        raise StatementInvalid(
            "this is no place in OpenSearch",
            found="no host, a user, or a path",
            expected="opensearch://host:port?option=value, without a user or a path",
            hint=f"correct it; for auth basic set {USERNAME} and {PASSWORD}",
        )
    options = {"read.scroll_size": _PAGE, "host": parts.hostname, **dict(parse_qsl(parts.query))}
    username_variable = options.pop(USERNAME_VARIABLE, USERNAME)
    password_variable = options.pop(PASSWORD_VARIABLE, PASSWORD)
    form = options.pop("form", FlintForm.TODAY.value).upper()
    if form not in set(FlintForm):
        raise StatementInvalid(
            "form has no such value",
            found=form,
            expected="TODAY or SEED",
            hint="choose one of these",
        )
    if parts.port is not None:
        options["port"] = str(parts.port)
    if options.get("auth", "").lower() == "basic":
        options["username"] = _variable(username_variable)
        options["password"] = _variable(password_variable)
        remember_secret(options["password"], options["username"])
    return OpenSearchBase(parse_options(options), FlintForm(form))


def _variable(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise StatementInvalid(
            "auth basic needs a user, and an environment variable for it is not set",
            expected=name,
            hint="set it where queries and jobs run",
        )
    return value
