"""Stores of local folders and of S3, Google and Azure buckets, opened by a URI."""

import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

import obstore
from obstore import exceptions
from obstore.store import AzureStore, GCSStore, S3Store
from obstore.store import ObjectStore as Backend

from snaploom.errors import FolderNotWritable, ObjectNotFound, SnaploomError, StorageError
from snaploom.files.objectstore import (
    ObjectInfo,
    absent,
    check_key,
    check_prefix,
    exists_already,
    too_large,
)
from snaploom.models.common import NANOS_PER_MICROSECOND, EpochNanos
from snaploom.policy.addresses import hadoop_uri

# Translates failures of obstore to Snaploom's errors, without secrets.


class BucketNotFound(StorageError):
    """The bucket or container of a URI does not exist."""


class AccessDenied(StorageError):
    """Access denied for these credentials."""


class StoreUnreachable(StorageError):
    """No server answers at the endpoint."""


class FileTooLong(StorageError):
    """A file is longer than the store moves in one request."""


class WritersMet(StorageError):
    """Two conditional writes met and the server decided neither ("409"): put again, then read."""


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
"""Places in which clients look for credentials when the environment has none."""

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
            f"there is no bucket for {place}", found=answer.message, expected="a bucket that exists"
        )
    if any(service in str(error) for service in _METADATA_SERVICES):
        return _refused(place, "no credentials in the environment", variables, "", writing)
    if isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError) or (
        answer.status in _REFUSALS or answer.code in _HINTS
    ):
        return _refused(place, answer.message, variables, answer.code, writing)
    if isinstance(error, FileNotFoundError | exceptions.NotFoundError) and answer.code in ABSENT:
        return absent(place)
    if answer.status == 409 and answer.code not in TAKEN:
        return WritersMet(
            f"another writer is just writing {place}",
            found=answer.message,
            expected="one writer at a time",
        )
    if isinstance(error, exceptions.AlreadyExistsError | exceptions.PreconditionError):
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


# Stores that obstore knows, behind the object store port.

DELETED_TOGETHER = 1000
"""Keys of one request: S3's limit."""

MEETINGS, LONGEST_PAUSE = 5, 0.2
"""Times that a conditional write is tried while others write the same key, and the longest pause
in between in seconds: a multiple of what one such write takes."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ObstoreObjectStore:
    """Any store of obstore, with its failures translated to Snaploom's errors."""

    def __init__(
        self,
        backend: Backend,
        uri: str,
        variables: str = "the environment",
        longest: int | None = None,
    ) -> None:
        """Wrap a store whose root is `uri`, as Hadoop takes it; `variables` are for messages."""
        self._backend = backend
        self._uri = uri
        self._variables = variables
        self._longest = longest

    @property
    def uri(self) -> str:
        return self._uri

    def put_if_absent(self, key: str, data: bytes) -> None:
        check_key(key)
        self._insist(key, lambda: obstore.put(self._backend, key, data, mode="create"))

    def put(self, key: str, data: bytes) -> None:
        with self._translated(check_key(key), writing=True):
            obstore.put(self._backend, key, data, mode="overwrite")

    def get(self, key: str, limit: int | None = None) -> bytes:
        """Read a whole object; its length is known before its content is asked for."""
        with self._translated(check_key(key), writing=False):
            found = obstore.get(self._backend, key)
            if limit is not None and found.meta["size"] > limit:
                raise too_large(f"{self._uri}{key}", found.meta["size"], limit)
            return bytes(found.bytes())

    def get_range(self, key: str, start: int, length: int) -> bytes:
        with self._translated(check_key(key), writing=False):
            return bytes(obstore.get_range(self._backend, key, start=start, length=length))

    def head(self, key: str) -> ObjectInfo | None:
        try:
            with self._translated(check_key(key), writing=False):
                found = obstore.head(self._backend, key)
        except ObjectNotFound:
            return None
        return ObjectInfo(key, found["size"], _nanos(found["last_modified"]), found["e_tag"])

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """List page by page; empty objects by which Hadoop's client marks folders are none."""
        check_prefix(prefix)
        with self._translated(prefix, writing=False):
            for page in obstore.list(self._backend, prefix=prefix or None):
                for found in page:
                    key, modified = found["path"], _nanos(found["last_modified"])
                    # `a/` is listed as `a`, and is then absent under that name.
                    if found["size"] or self.head(key) is not None:
                        yield ObjectInfo(key, found["size"], modified, found["e_tag"])

    def list_folder(self, folder: str) -> tuple[Sequence[ObjectInfo], Sequence[str]]:
        """Objects directly below a folder (a key that ends in `/`, or empty), and folder names."""
        mark = folder.removesuffix("/")  # an empty object by which Hadoop's client marks a folder
        with self._translated(check_prefix(folder), writing=False):
            found = obstore.list_with_delimiter(self._backend, prefix=mark or None)
        objects = [
            ObjectInfo(one["path"], one["size"], _nanos(one["last_modified"]), one["e_tag"])
            for one in found["objects"]
            if one["path"] != mark
        ]
        return objects, [place.rpartition("/")[2] for place in found["common_prefixes"]]

    def delete(self, keys: Iterable[str]) -> None:
        """Delete many in one request; one by one where an absent key ends the others' deletion."""
        remaining = iter(keys)
        while batch := [check_key(key) for key in islice(remaining, DELETED_TOGETHER)]:
            try:
                self._delete(batch)
            except ObjectNotFound:
                self._delete_each(batch)

    def move_if_absent(self, source: str, target: str) -> None:
        """Conditional rename; a copy by the server and a delete on stores without renaming."""
        info = self.head(source)
        if info is None:
            raise absent(f"{self._uri}{source}")
        if self._longest is not None and info.size > self._longest:
            raise FileTooLong(
                f"{self._uri}{source} is too long to be published in one piece",
                found=f"{info.size:,} bytes",
                expected=f"at most {self._longest:,} bytes a file",
            )
        check_key(target)
        self._insist(target, lambda: obstore.rename(self._backend, source, target, overwrite=False))

    def prune(self, prefix: str) -> None:
        check_prefix(prefix)

    def _delete(self, keys: Sequence[str]) -> None:
        with self._translated(keys[0], writing=True):
            obstore.delete(self._backend, keys)

    def _delete_each(self, keys: Iterable[str]) -> None:
        for key in keys:
            try:
                self._delete([key])
            except ObjectNotFound:
                continue

    def _insist(self, key: str, operation: Callable[[], object]) -> None:
        """Retry an operation while another writer of the same key is in the way."""
        for attempt in range(MEETINGS):
            try:
                with self._translated(key, writing=True):
                    operation()
            except WritersMet:
                if attempt == MEETINGS - 1:
                    raise
                time.sleep(LONGEST_PAUSE * random.random())
            else:
                return

    @contextmanager
    def _translated(self, key: str, *, writing: bool) -> Iterator[None]:
        try:
            yield
        except (exceptions.BaseError, OSError) as error:
            place = f"{self._uri}{key}"
            raise store_error(error, place, self._variables, writing=writing) from None


def _nanos(moment: datetime) -> EpochNanos:
    passed = moment - _EPOCH
    micros = (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds
    return EpochNanos(micros * NANOS_PER_MICROSECOND)


# Buckets of S3, Google and Azure: from a URI and the process's environment to a store.

S3_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
"""Environment variables that name another server than Amazon's, the first that is set."""

LONGEST_OBJECT = 5 * 1024**3
"""Bytes of the longest object that S3 copies in one request, as promotion does."""

RETRIES = 6
"""Times that a request is sent again, with pauses of 0.1 s doubled each time: some ten seconds,
which a server needs to come back from a restart. Obstore's default is three minutes of silence."""

RETRY_TIMEOUT = timedelta(seconds=60)
"""Time for one request with all its repetitions."""

_AZURE = re.compile(
    r"(?P<container>[^@/]+)@(?P<account>[^./]+)\.(?P<kind>dfs|blob)\.core\.windows\.net"
)


class CloudUriInvalid(StorageError):
    """A URI names no bucket, or an account that is not known."""


def open_s3(uri: str, environment: Mapping[str, str]) -> ObstoreObjectStore:
    """Store of `s3://bucket/folder` (or `s3a:`); `CloudUriInvalid` without a bucket."""
    bucket, folder = _bucket(uri)
    endpoint = s3_endpoint(environment)
    backend = S3Store(
        bucket,
        prefix=folder or None,
        client_options={"allow_http": endpoint is not None and endpoint.startswith("http:")},
        retry_config={"max_retries": RETRIES, "retry_timeout": RETRY_TIMEOUT},
        # A copy that is refused when there is a target: S3 has that for multipart uploads only.
        copy_if_not_exists="multipart",
        config={} if endpoint is None else {"endpoint": endpoint},
    )
    return ObstoreObjectStore(backend, _folder_uri("s3a", bucket, folder), "AWS_*", LONGEST_OBJECT)


def s3_endpoint(environment: Mapping[str, str]) -> str | None:
    """Return the server's endpoint; None for Amazon's own."""
    return next((environment[name] for name in S3_ENDPOINTS if environment.get(name)), None)


def open_gs(uri: str, environment: Mapping[str, str]) -> ObstoreObjectStore:
    """Store of `gs://bucket/folder`; `CloudUriInvalid` without a bucket."""
    bucket, folder = _bucket(uri)
    backend = GCSStore(
        bucket,
        prefix=folder or None,
        retry_config={"max_retries": RETRIES, "retry_timeout": RETRY_TIMEOUT},
    )
    return ObstoreObjectStore(backend, _folder_uri("gs", bucket, folder), "GOOGLE_*")


def open_azure(uri: str, environment: Mapping[str, str]) -> ObstoreObjectStore:
    """The store of `abfss://container@account.dfs.core.windows.net/folder` or `az://container/...`.

    The short form takes the account from `AZURE_STORAGE_ACCOUNT_NAME`.
    """
    authority, folder = _bucket(uri)
    match = _AZURE.fullmatch(authority)
    container = match["container"] if match else authority
    account = match["account"] if match else environment.get("AZURE_STORAGE_ACCOUNT_NAME", "")
    if not account or "@" in container:
        raise CloudUriInvalid(
            f"{uri} names no storage account",
            found=authority,
            expected="abfss://container@account.dfs.core.windows.net/folder/",
            hint="or az://container/folder/ with AZURE_STORAGE_ACCOUNT_NAME in the environment",
        )
    backend = AzureStore(
        container,
        prefix=folder or None,
        account_name=account,
        retry_config={"max_retries": RETRIES, "retry_timeout": RETRY_TIMEOUT},
    )
    place = f"{container}@{account}.dfs.core.windows.net"
    return ObstoreObjectStore(backend, _folder_uri("abfss", place, folder), "AZURE_*")


def _bucket(uri: str) -> tuple[str, str]:
    authority, _, folder = hadoop_uri(uri).partition("://")[2].partition("/")
    if not authority:
        raise CloudUriInvalid(
            f"{uri} names no bucket",
            found="nothing between // and /",
            expected="scheme://bucket/folder/",
        )
    return authority, "/".join(part for part in folder.split("/") if part)


def _folder_uri(scheme: str, authority: str, folder: str) -> str:
    return f"{scheme}://{authority}/{folder}/" if folder else f"{scheme}://{authority}/"
