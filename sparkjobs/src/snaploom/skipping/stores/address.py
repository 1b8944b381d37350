"""URI of a declared OpenSearch: the same in every interface, without secrets."""

from __future__ import annotations

from urllib.parse import urlencode

from snaploom.errors import IndexNotPossible
from snaploom.models.datasource import Credentials
from snaploom.models.skippingindex import OpenSearchAuth, OpenSearchStore
from snaploom.planning.secretvariables import user_and_password

SCHEME = "opensearch"
"""Scheme of such URIs."""

USERNAME_VARIABLE, PASSWORD_VARIABLE = "username_variable", "password_variable"
"""Options of a URI: the environment variables that hold user name and password."""


def is_opensearch(location: str) -> bool:
    """Whether a location is in OpenSearch."""
    return location.lower().startswith(f"{SCHEME}:")


def uri_of_store(store: OpenSearchStore) -> str:
    """URI of a declared store; `IndexNotPossible` if the declaration contains credentials."""
    options = {"scheme": store.scheme, "auth": store.auth.value.lower()}
    if store.region is not None:
        options["region"] = store.region
    if store.auth is OpenSearchAuth.BASIC and store.credentials is not None:
        options[USERNAME_VARIABLE], options[PASSWORD_VARIABLE] = _variables(store.credentials)
    host = f"[{store.host}]" if ":" in store.host else store.host
    return f"{SCHEME}://{host}:{store.port}?{urlencode(options)}"


def _variables(credentials: Credentials) -> tuple[str, str]:
    """Variables of user name and password: queries read them later, on any machine."""
    keys = user_and_password(credentials)
    if keys is not None:
        user, password = keys
        return user.variable, password.variable
    declared = credentials.from_environment
    if declared is None:
        raise IndexNotPossible(
            "user and password of OpenSearch are read from environment variables",
            found="credentials in the declaration itself",
            expected="credentials.fromEnvironment or credentials.fromSecret",
            hint="take them out of the address, and set the variables",
        )
    return declared.user_variable, declared.password_variable
