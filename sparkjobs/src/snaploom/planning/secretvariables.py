"""Keys of Secrets as environment variables: how a job gets credentials that nobody else may read.

The operator writes a reference into the driver's pod, the kubelet fills it, and the job reads the
variable. The name follows from only Secret and key, so that both sides know it without a word.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from snaploom.models.datasource import Credentials
from snaploom.models.run import RunAction
from snaploom.planning.bundle import Bundle
from snaploom.planning.sources.registry import declared

_PREFIX = "SNAPLOOM_SECRET_"
_DIGITS = 16
"""Half of the digits that would resist a search for two equal ones, which gains nothing: the author
of a reference may read the Secret."""


@dataclass(frozen=True, order=True)
class SecretKey:
    """One key of a Secret in the namespace of the run."""

    secret: str
    key: str

    @property
    def variable(self) -> str:
        """Name of the environment variable that holds its value."""
        digest = hashlib.sha256(f"{self.secret}/{self.key}".encode()).hexdigest()
        return f"{_PREFIX}{digest[:_DIGITS].upper()}"


def user_and_password(credentials: Credentials) -> tuple[SecretKey, SecretKey] | None:
    """The keys of user name and password; None where they are not in a Secret."""
    named = credentials.from_secret
    if named is None:
        return None
    return SecretKey(named.name, named.user_key), SecretKey(named.name, named.password_key)


def secret_keys(bundle: Bundle, action: RunAction = RunAction.RUN) -> tuple[SecretKey, ...]:
    """Every key that a run needs, each once, in one order.

    A run that deletes reads no source: it must not wait for a Secret that went before it.
    """
    found = _credentials(bundle, action)
    return tuple(sorted({key for credentials in found for key in _keys(credentials)}))


def _credentials(bundle: Bundle, action: RunAction) -> Iterator[Credentials | None]:
    for source in bundle.data_sources if action is RunAction.RUN else ():
        yield declared(source).credentials
    index = bundle.skipping_index
    if index is not None and index.spec.store.open_search is not None:
        yield index.spec.store.open_search.credentials


def _keys(credentials: Credentials | None) -> tuple[SecretKey, ...]:
    return () if credentials is None else user_and_password(credentials) or ()
