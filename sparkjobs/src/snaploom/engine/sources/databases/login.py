"""The login to a database: read when it is needed, stored nowhere, never printed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from snaploom.confidential import HIDDEN, remember_secret
from snaploom.errors import SourceError
from snaploom.models.datasource import Credentials
from snaploom.planning.secretvariables import user_and_password


class CredentialsRefused(SourceError):
    """There are no credentials where they should be, or the database does not accept them."""

    reason = "CredentialsRefused"


@dataclass(frozen=True)
class Login:
    """User name and password."""

    user: str = field(repr=False)
    password: str = field(repr=False)

    def hide(self, text: str) -> str:
        """A text without them, wherever a driver may have repeated one."""
        if self.password:
            text = text.replace(self.password, HIDDEN)
        # Names of users are short: as a part of a word it is not the name that stands there.
        return re.sub(rf"(?<!\w){re.escape(self.user)}(?!\w)", HIDDEN, text) if self.user else text


def login_of(
    credentials: Credentials | None, environment: Mapping[str, str], resource: str
) -> Login | None:
    """User name and password of a source; None where it needs none.

    Raises:
        CredentialsRefused: a variable is not set.
    """
    if credentials is None:
        return None
    if credentials.from_plaintext is not None:
        given = credentials.from_plaintext
        return _remembered(given.user, given.password.get_secret_value())
    keys = user_and_password(credentials)
    if keys is not None:
        names = {f"key {key.key} of Secret/{key.secret}": key.variable for key in keys}
        path, hint = (
            "fromSecret",
            "the operator sets it in the driver's pod; elsewhere set it by hand",
        )
    else:
        declared = credentials.from_environment
        assert declared is not None  # exactly one of the three is given
        names = {"user": declared.user_variable, "password": declared.password_variable}
        path, hint = "fromEnvironment", "set it where the job's driver runs"
    missing = [f"{name} ({what})" for what, name in names.items() if name not in environment]
    if missing:
        raise CredentialsRefused(
            "the credentials of the database are not there",
            resource=resource,
            path=f"spec.jdbc.credentials.{path}",
            found="no environment variable " + ", no ".join(missing),
            expected="user and password in the environment of the driver",
            hint=hint,
        )
    user, password = (environment[name] for name in names.values())
    return _remembered(user, password)


def _remembered(user: str, password: str) -> Login:
    remember_secret(password, user)
    return Login(user, password)
