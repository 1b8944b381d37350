"""Errors of a bucket's server, as people see them: real servers, behind a proxy that loses."""

from collections.abc import Mapping

import pytest
from support.servers.guardedproxy import first, lossy
from support.servers.s3servers import BUCKET, SECRET_KEY, S3Server, environment_of
from support.storage.folders import a_folder, a_run, keys, published

from snaploom.errors import FolderNotWritable, ObjectAlreadyExists, SnaploomError, StorageError
from snaploom.files.cloud import (
    AccessDenied,
    BucketNotFound,
    CloudUriInvalid,
    FileTooLong,
    StoreUnreachable,
    store_error,
)
from snaploom.files.objectstore import self_test
from snaploom.files.stores import open_store
from snaploom.output.manifest import CommitOutcomeUnknown
from snaploom.output.publication import Published

WRONG_SECRET = "wr0ng-but-nobody-may-show-it-either"


@pytest.mark.parametrize(
    ("changes", "bucket", "kind", "hint"),
    [
        pytest.param({}, "no-such-bucket", BucketNotFound, "Create the bucket", id="no bucket"),
        pytest.param(
            {"AWS_SECRET_ACCESS_KEY": WRONG_SECRET}, BUCKET, AccessDenied, "secret key", id="secret"
        ),
        pytest.param({"AWS_ACCESS_KEY_ID": "other"}, BUCKET, AccessDenied, "access key", id="key"),
        pytest.param(
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, BUCKET, StoreUnreachable, "endpoint",
            id="endpoint",
        ),
    ],
)  # fmt: skip
def test_faults_of_the_environment_are_reported_without_secrets(
    versitygw: S3Server,
    monkeypatch: pytest.MonkeyPatch,
    changes: Mapping[str, str],
    bucket: str,
    kind: type[SnaploomError],
    hint: str,
) -> None:
    for name, value in {**versitygw.environment, **changes}.items():
        monkeypatch.setenv(name, value)
    store = open_store(f"s3://{bucket}/x/", create=True)
    for operation in (lambda: store.get("a"), lambda: list(store.list(""))):
        with pytest.raises(kind, match=hint) as caught:
            operation()
        assert not {SECRET_KEY, WRONG_SECRET} & set(str(caught.value).split())
        assert caught.value.__cause__ is None
        assert "Signature" not in str(caught.value).replace("SignatureDoesNotMatch", "")


def test_refused_write_is_a_folder_that_cannot_be_written(versitygw, monkeypatch):
    for name, value in versitygw.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", WRONG_SECRET)
    with pytest.raises(FolderNotWritable, match="may not be written"):
        open_store(f"s3://{BUCKET}/x/", create=True).put_if_absent("a", b"")


def test_clock_that_is_wrong_is_named() -> None:
    answer = PermissionError(
        "Server returned non-2xx status code: 403 Forbidden: <Error><Code>RequestTimeTooSkewed"
        "</Code><Message>The difference is too large.</Message><StringToSign>x</StringToSign>"
    )
    failure = store_error(answer, "s3a://b/x", "AWS_*", writing=False)
    assert isinstance(failure, AccessDenied)
    assert "clock" in (failure.hint or "")
    assert "StringToSign" not in str(failure)


@pytest.mark.parametrize("uri", ["s3:///x/", "gs:///x/", "az://container/x/", "az://a@b/x/"])
def test_uri_without_a_place_is_refused(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(CloudUriInvalid):
        open_store(uri, create=True)


@pytest.mark.parametrize(
    ("uri", "shown_as"),
    [
        ("s3://b/x//y", "s3a://b/x/y/"),
        ("S3N://b", "s3a://b/"),
        ("gs://b/x/", "gs://b/x/"),
        ("abfss://c@acc.dfs.core.windows.net/x", "abfss://c@acc.dfs.core.windows.net/x/"),
        ("az://c/x/", "abfss://c@acc.dfs.core.windows.net/x/"),
    ],
)
def test_store_has_the_uri_that_hadoop_takes(uri, shown_as, monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "acc")
    assert open_store(uri, create=True).uri == shown_as


def test_put_whose_answers_are_lost_is_committed_once(versitygw: S3Server) -> None:
    loss = first(3, "PUT", "/manifest/", "answer")
    with lossy(versitygw, loss) as server, environment_of(server):
        folder = a_folder(open_store(f"s3://{BUCKET}/lost-answers/", create=True))
        outcome = published(folder)
        assert folder.log.read().seq == 2
    assert isinstance(outcome, Published)


def test_file_that_is_too_long_to_be_moved_is_refused_for_good(versitygw, monkeypatch):
    monkeypatch.setattr("snaploom.files.cloud.LONGEST_OBJECT", 3)
    with environment_of(versitygw):
        store = open_store(f"s3://{BUCKET}/long/", create=True)
        store.put_if_absent("a", b"four")
        with pytest.raises(FileTooLong, match="too long to be published") as refused:
            store.move_if_absent("a", "b")
    assert not refused.value.retryable
    assert store.get("a") == b"four"


def test_conflict_is_asked_again_and_is_no_refusal(versitygw: S3Server) -> None:
    with lossy(versitygw, first(2, "PUT", "conflict/a", "409")) as server, environment_of(server):
        store = open_store(f"s3://{BUCKET}/conflict/", create=True)
        store.put_if_absent("a", b"1")
        with pytest.raises(ObjectAlreadyExists):
            store.put_if_absent("a", b"2")
        assert store.get("a") == b"1"


def test_endless_conflict_is_no_refusal_either(versitygw, monkeypatch):
    monkeypatch.setattr("snaploom.files.cloud.RETRIES", 1)
    loss = first(100, "PUT", "endless/a", "409")
    with lossy(versitygw, loss) as server, environment_of(server):
        store = open_store(f"s3://{BUCKET}/endless/", create=True)
        with pytest.raises(StorageError, match="ConditionalRequestConflict") as caught:
            store.put_if_absent("a", b"1")
    assert not isinstance(caught.value, ObjectAlreadyExists)


def test_self_test_survives_a_lost_answer(versitygw: S3Server) -> None:
    loss = first(1, "PUT", "self-test", "answer")
    with lossy(versitygw, loss) as server, environment_of(server):
        store = open_store(f"s3://{BUCKET}/tested/", create=True)
        self_test(store)
        assert keys(store, "") == set()


def test_server_that_never_answers_a_commit_leaves_its_outcome_unknown(versitygw, monkeypatch):
    monkeypatch.setattr("snaploom.files.cloud.RETRIES", 0)
    with environment_of(versitygw):
        a_folder(open_store(f"s3://{BUCKET}/silent/", create=True))
    loss = first(1000, "PUT", "silent/metadata/manifest", "503")
    with lossy(versitygw, loss) as server, environment_of(server):
        folder = a_folder(open_store(f"s3://{BUCKET}/silent/", create=True))
        with pytest.raises(CommitOutcomeUnknown):
            published(folder, run=a_run())
    with environment_of(versitygw):
        folder = a_folder(open_store(f"s3://{BUCKET}/silent/", create=True))
        assert isinstance(published(folder), Published)
