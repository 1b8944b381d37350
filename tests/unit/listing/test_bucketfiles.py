"""Files of buckets, listed without Hadoop's client where it surely sees the same."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from functools import partial

import pytest
from support.servers.s3servers import BUCKET, S3Server, environment_of

from snaploom.files.listed import ListedFile, SparkNeeded
from snaploom.files.stores import open_store
from snaploom.policy.addresses import S3, kind_of
from snaploom.sources.files.buckets import A_PAGE, BucketFiles
from snaploom.sources.files.globs import files_of_folders, folders_with_files, is_hidden, list_files

KEYS = ("a/1/x.parquet", "a/1/y.csv", "a/2/x.parquet", "a/_tmp/x.parquet", "a/1/.x", "a/z.parquet")


@pytest.fixture(params=["versitygw", "moto"])
def server(request: pytest.FixtureRequest) -> Iterator[S3Server]:
    found: S3Server = request.getfixturevalue(request.param)
    with environment_of(found):
        yield found


@pytest.fixture
def place(server: S3Server) -> str:
    """A folder with some objects of one byte."""
    place = f"s3a://{BUCKET}/{secrets.token_hex(8)}"
    store = open_store(place, create=True)
    for key in KEYS:
        store.put(key, b"1")
    return place


def matches(place: str, glob: str) -> list[str]:
    found = BucketFiles(os.environ).matches(f"{place}/{glob}", "DataSource/x")
    return sorted(f"{file.uri.removeprefix(place)}{'/' * file.folder}" for file in found)


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("a/*/*.parquet", ["/a/1/x.parquet", "/a/2/x.parquet", "/a/_tmp/x.parquet"]),
        ("a/?/x.*", ["/a/1/x.parquet", "/a/2/x.parquet"]),
        ("*/1/y.csv", ["/a/1/y.csv"]),
        ("a/*", ["/a/1/", "/a/2/", "/a/_tmp/", "/a/z.parquet"]),
        ("a//z.parquet", ["/a/z.parquet"]),
        ("a/1", ["/a/1/"]),
        ("a/*/1", []),
        ("a/*/nothing/*", []),
        ("b/*", []),
        ("b", []),
    ],
)
def test_glob_matches_names_step_by_step(place, glob, expected) -> None:
    assert matches(place, glob) == expected


FOLDER_GLOBS = ("a/*/*.parquet", "a/*/*", "a/?/y.*", "*/1/y.csv", "a/*", "b/*/*", "a/*/.x", "*/*")


@pytest.mark.parametrize("glob", FOLDER_GLOBS)
def test_folders_of_a_glob_are_those_of_its_files(place, glob) -> None:
    whole = f"{place}/{glob}"
    folders = BucketFiles(os.environ).folders(whole, partial(is_hidden, glob=whole))
    listed = list_files([whole], "DataSource/x", BucketFiles(os.environ))
    assert sorted(folders) == sorted({file.uri.rpartition("/")[0] for file in listed})


def test_a_folder_of_a_bucket_with_much_below_it_is_asked_for_its_own_files(place) -> None:
    store = open_store(place, create=False)
    for number in range(A_PAGE + 1):
        store.put(f"c/1/below/{number:04d}.parquet", b"1")
    glob = f"{place}/c/*/*.parquet"
    ask = partial(BucketFiles(os.environ).folders, glob, partial(is_hidden, glob=glob))
    assert ask() == []
    store.put("c/1/z.parquet", b"1")
    assert ask() == [f"{place}/c/1"]


def test_files_of_a_folder_of_a_bucket_are_listed_when_they_are_read(place) -> None:
    (folder,) = folders_with_files([f"{place}/a/1/*.csv"], BucketFiles(os.environ)) or ()
    files = files_of_folders([folder], "DataSource/x", BucketFiles(os.environ))
    assert [file.name for file in files] == ["y.csv"]


def test_files_have_what_a_run_goes_by(place) -> None:
    (file,) = list_files([f"{place}/a/1/x.*"], "DataSource/x", BucketFiles(os.environ))
    info = open_store(f"{place}/a/1/", create=False).head("x.parquet")
    assert info is not None
    assert info.etag is not None
    assert (file.uri, file.length) == (f"{place}/a/1/x.parquet", 1)
    assert file.modified == info.modified // 1_000_000
    assert file.etag == info.etag.strip('"')


def test_hidden_files_are_left_out_as_for_every_store(place) -> None:
    found = list_files([f"{place}/a/*/*"], "DataSource/x", BucketFiles(os.environ))
    assert [file.name for file in found] == ["x.parquet", "y.csv", "x.parquet"]


def test_mark_of_a_folder_is_no_file(server, place) -> None:
    key = f"{place.removeprefix(f's3a://{BUCKET}/')}/a/1/"
    server.put(key)
    assert matches(place, "a/1/*") == ["/a/1/.x", "/a/1/x.parquet", "/a/1/y.csv"]
    assert "/a/1/" in matches(place, "a/*")


MARKS = ("a/1_$folder$", "a/2/below_$folder$", "a/3_$folder$", "a/4/below", "a/5/")
"""Objects without a byte, by which clients mark folders; `a/4/below` is one where it has a file."""


@pytest.mark.parametrize("glob", ["a/*", "a/*/*", "a/?/*", "a/3_$folder$", "a/*/below_$folder$"])
def test_marks_of_folders_are_neither_files_nor_folders_with_some(
    request, server, place, glob
) -> None:
    whole, store = f"{place}/{glob}", open_store(place, create=False)
    store.put("a/4/below/x", b"1")
    store.put("a/5/x", b"1")
    is_file_system = request.node.callspec.params["server"] == "versitygw"

    def listed() -> tuple[list[ListedFile], list[str]]:
        files = BucketFiles(os.environ)
        folders = files.folders(whole, partial(is_hidden, glob=whole))
        return [*list_files([whole], "DataSource/x", files)], sorted(folders)

    before = listed()
    for key in MARKS:
        if key != "a/4/below" or not is_file_system:  # in which a file is no folder
            server.put(f"{place.removeprefix(f's3a://{BUCKET}/')}/{key}")
    assert listed() == before


@pytest.mark.parametrize("glob", ["a/{1,2}/*", "a/[12]/*", "a/../a/*", "a/\\*"])
def test_globs_that_hadoop_reads_otherwise_are_left_to_it(place, glob) -> None:
    with pytest.raises(SparkNeeded):
        matches(place, glob)


def test_folder_with_an_odd_name_is_left_to_hadoop(place) -> None:
    open_store(place, create=True).put("a/1/a:b", b"1")
    with pytest.raises(SparkNeeded):
        matches(place, "a/1/*")
    assert matches(place, "a/2/*") == ["/a/2/x.parquet"]


@pytest.mark.parametrize(
    "uri", ["s3a://no-such-bucket-here/a/*", f"s3a://{BUCKET}/", "s3a://*/a", "hdfs://host/a"]
)
def test_places_that_cannot_be_listed_are_left_to_hadoop(server, uri) -> None:
    with pytest.raises(SparkNeeded):
        BucketFiles(os.environ).matches(uri, "DataSource/x")


def test_objects_and_folders_exist_and_ends_are_read(place) -> None:
    files = BucketFiles(os.environ)
    assert [files.exists(f"{place}/{key}") for key in ("a/z.parquet", "a/1", "a/z")] == [
        True, True, False,
    ]  # fmt: skip
    open_store(place, create=True).put("long", b"123456789")
    assert files.end(ListedFile(f"{place}/long", 9, 0), 4) == b"6789"
    with pytest.raises(SparkNeeded):
        files.end(ListedFile(f"{place}/gone", 9, 0), 4)


@pytest.mark.parametrize(
    ("uri", "expected"), [("s3://b/a", True), ("s3a://b/a", True), ("gs://b/a", False)]
)
def test_buckets_are_those_of_s3(uri, expected) -> None:
    assert (kind_of(uri) is S3) is expected
