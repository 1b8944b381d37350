"""The URI of a declared OpenSearch: one text names it at every door, with no secret in it."""

from __future__ import annotations

from urllib.parse import urlencode

from snaploom.errors import IndexNotPossible
from snaploom.models.skippingindex import OpenSearchAuth, OpenSearchStore

SCHEME = "opensearch"
"""Scheme of such URIs."""

USERNAME_VARIABLE, PASSWORD_VARIABLE = "username_variable", "password_variable"
"""Options of a URI: the environment variables that hold user name and password."""


def is_opensearch(location: str) -> bool:
    """Whether a location is one in OpenSearch."""
    return location.lower().startswith(f"{SCHEME}:")


def uri_of_store(store: OpenSearchStore) -> str:
    """The URI of a declared store.

    Raises:
        IndexNotPossible: its credentials are not in environment variables.
    """
    options = {"scheme": store.scheme, "auth": store.auth.value.lower()}
    if store.region is not None:
        options["region"] = store.region
    if store.auth is OpenSearchAuth.BASIC and store.credentials is not None:
        variables = store.credentials.from_environment
        if variables is None:
            raise IndexNotPossible(
                "user and password of OpenSearch are read from environment variables only",
                found="credentials from elsewhere",
                expected="credentials.fromEnvironment",
            )
        options[USERNAME_VARIABLE] = variables.user_variable
        options[PASSWORD_VARIABLE] = variables.password_variable
    host = f"[{store.host}]" if ":" in store.host else store.host
    return f"{SCHEME}://{host}:{store.port}?{urlencode(options)}"
