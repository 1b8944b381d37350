"""Translates failures of obstore to Snaploom's errors, without secrets.

An answer "404" does not prove that an object is absent: the bucket may be, and one server
gives it for an access key that it does not know. Only the answer's code does. What servers send
along (signatures, strings that were signed, tokens in URLs) is never passed on: of an answer we
keep its code and its sentence, of a failed request its kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from obstore.exceptions import (
    AlreadyExistsError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from snaploom.errors import (
    FolderNotWritable,
    SnaploomError,
    StorageError,
)
from snaploom.storage.objectstore import absent, exists_already


class BucketNotFound(StorageError):
    """The bucket or container of a URI does not exist."""

    reason = "BucketNotFound"
    retryable = False


class AccessDenied(StorageError):
    """Access denied for these credentials."""

    reason = "AccessDenied"


class StoreUnreachable(StorageError):
    """No server answers at the endpoint."""

    reason = "StoreUnreachable"


class FileTooLong(StorageError):
    """A file is longer than the store moves in one request."""

    reason = "FileTooLong"
    retryable = False


class WritersMet(StorageError):
    """Two conditional writes met and the server decided neither ("409"): put again, then read."""

    reason = "WritersMet"


@dataclass(frozen=True)
class Answer:
    """Facts about a failed request."""

    status: int | None
    """HTTP status of the answer; None when there was none."""
    code: str
    """The server's own code, such as `NoSuchKey`; empty when it sent none."""
    message: str
    """One line for people, without anything that was secret or signed."""


ABSENT = frozenset({"", "NoSuchKey", "NoSuchVersion", "BlobNotFound"})
"""Codes of "404" by which an object is absent; none at all where only properties were asked for."""

NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound"})

TAKEN = frozenset({"BlobAlreadyExists"})
"""Codes of "409" by which the object is there: Azure's."""

_HINTS: Mapping[str, str] = {
    "RequestTimeTooSkewed": "set this machine's clock: the server's differs by minutes",
    "SignatureDoesNotMatch": "check the secret key in {variables}",
    "InvalidAccessKeyId": "check the access key in {variables}",
    "XAdminUserNotFound": "check the access key in {variables}",
    "ExpiredToken": "get new credentials: those in {variables} have expired",
    "InvalidToken": "check the session token in {variables}",
    "AccessDenied": "allow these credentials to list, read, write and delete below the folder",
    "AuthorizationHeaderMalformed": "set AWS_REGION to the region of the bucket",
    "PermanentRedirect": "set AWS_REGION to the region of the bucket",
    "AuthorizationFailure": "check the account's key in {variables}",
}
_REFUSALS = frozenset({401, 403})
_METADATA_SERVICES = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")
"""Where clients look for credentials when the environment has none."""

_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z0-9.]{1,80})</Code>")
_MESSAGE = re.compile(r"<Message>([^<]{1,300})</Message>")
_NO_CONNECTION = re.compile(r'"(dns error|tcp connect error)"|kind: (Connect|Timeout)')


def read_answer(error: Exception) -> Answer:
    """Parse obstore's text about a failure."""
    text = str(error)
    status, code, message = (p.search(text) for p in (_STATUS, _CODE, _MESSAGE))
    number = int(status[1]) if status else None
    name = code[1] if code else ""
    if name or message:
        sentence = message[1].splitlines()[0] if message else ""
        answer = ": ".join(part for part in (name, sentence) if part)
    elif number is not None:
        answer = f"HTTP status {number}"
    else:
        # Queries of URLs contain signatures and tokens.
        answer = re.sub(r"\?\S+", "?…", text.split("\n", 1)[0])[:300]
    return Answer(number, name, answer)


def store_error(error: Exception, place: str, variables: str, *, writing: bool) -> SnaploomError:
    """Translate a failure of obstore; `variables` are those of the credentials, for messages."""
    answer = read_answer(error)
    if answer.code in NO_BUCKET:
        return BucketNotFound(
            f"there is no bucket for {place}",
            found=answer.message,
            expected="a bucket that exists",
            hint="make the bucket, or correct the URI or the endpoint; Snaploom makes none",
        )
    if any(service in str(error) for service in _METADATA_SERVICES):
        return _refused(place, "no credentials in the environment", variables, "", writing)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or (
        answer.status in _REFUSALS or answer.code in _HINTS
    ):
        return _refused(place, answer.message, variables, answer.code, writing)
    if isinstance(error, FileNotFoundError | NotFoundError) and answer.code in ABSENT:
        return absent(place)
    if answer.status == 409 and answer.code not in TAKEN:
        return WritersMet(
            f"another writer is just writing {place}",
            found=answer.message,
            expected="one writer at a time",
            hint="run again",
        )
    if isinstance(error, AlreadyExistsError | PreconditionError):
        return exists_already(place)
    if answer.status is None and _NO_CONNECTION.search(str(error)):
        return StoreUnreachable(
            f"no server answers for {place}",
            found=answer.message,
            expected="an endpoint that can be reached from here",
            hint=f"check the endpoint in {variables}, and the network",
        )
    verb = "writing" if writing else "reading"
    return StorageError(
        f"{verb} {place} failed",
        found=answer.message,
        expected="a server that carries the request out",
        hint=f"see in its words what it lacks, check endpoint and region in {variables}, try again",
    )


def _refused(
    place: str, found: str, variables: str, code: str, writing: bool
) -> FolderNotWritable | AccessDenied:
    kind = FolderNotWritable if writing else AccessDenied
    hint = _HINTS.get(code, "set credentials in {variables} that may use the folder")
    return kind(
        f"{place} may not be {'written' if writing else 'read'} with these credentials",
        found=found,
        expected=f"credentials that may {'write' if writing else 'read'} there",
        hint=hint.format(variables=variables),
    )
