"""Buckets of S3, Google and Azure: from a URI and the process's environment to a store.

Credentials, region and endpoint come only from the environment (rule P7): the variables that
these services' own clients read, which a pod has from `run.spark`. Nothing of them is in a URI, so
that no message, plan or status can contain them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta

from obstore.store import AzureStore, GCSStore, S3Store

from snaploom.errors import StorageError
from snaploom.planning.hadoopuris import hadoop_uri
from snaploom.storage.obstore_adapter import ObstoreObjectStore

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

    reason = "CloudUriInvalid"
    retryable = False


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

    Raises:
        CloudUriInvalid: there is no container in it, or no account anywhere.
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


Opener = Callable[[str, Mapping[str, str]], ObstoreObjectStore]

CLOUD_STORES: Mapping[str, Opener] = {
    "s3": open_s3,
    "s3n": open_s3,
    "s3a": open_s3,
    "gs": open_gs,
    "az": open_azure,
    "abfs": open_azure,
    "abfss": open_azure,
}
"""Openers of stores, by the scheme of a URI."""


def _bucket(uri: str) -> tuple[str, str]:
    authority, _, folder = hadoop_uri(uri).partition("://")[2].partition("/")
    if not authority:
        raise CloudUriInvalid(
            f"{uri} names no bucket",
            found="nothing between // and /",
            expected="scheme://bucket/folder/",
            hint="add the bucket",
        )
    return authority, "/".join(part for part in folder.split("/") if part)


def _folder_uri(scheme: str, authority: str, folder: str) -> str:
    return f"{scheme}://{authority}/{folder}/" if folder else f"{scheme}://{authority}/"
