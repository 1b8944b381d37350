"""The contract of object stores over a real HDFS, and the messages of its errors."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.storage.objectstoresuite import *  # noqa: F403
from support.storage.objectstoresuite import keys

from snaploom.errors import FolderNotOurs, FolderNotWritable, StorageError
from snaploom.files.stores import UnsupportedStore, open_store
from snaploom.spark.hadoopstore import HadoopObjectStore, hadoop_stores
from snaploom.spark.jvm import client_of

pytestmark = pytest.mark.spark


@pytest.fixture
def store(spark: SparkSession, hdfs: str) -> HadoopObjectStore:
    return HadoopObjectStore(client_of(spark), f"{hdfs}/{secrets.token_hex(8)} %3A/", create=True)


@pytest.fixture
def racing_store(store: HadoopObjectStore) -> HadoopObjectStore:
    return store


def test_directories_that_are_emptied_go_and_places_of_work_stay(
    spark: SparkSession, store: HadoopObjectStore
) -> None:
    store.put("a/b/c", b"1")
    store.put("a/.staging/r/d", b"1")
    store.delete(["a/b/c", "a/.staging/r/d"])
    again = HadoopObjectStore(client_of(spark), f"{store.uri}a", create=False)
    assert [found.uri for found in again._listed(again.uri)] == [f"{again.uri}.staging"]
    store.prune("a/")
    assert again._listed(again.uri) == []


def test_store_is_opened_by_scheme_and_by_default_file_system(
    spark: SparkSession, hdfs: str
) -> None:
    store = open_store(f"{hdfs}/by-scheme", create=True, others=hadoop_stores(spark))
    store.put_if_absent("a", b"1")
    assert (store.uri, keys(store)) == (f"{hdfs}/by-scheme/", {"a"})


def test_folder_that_refuses_is_an_error(spark: SparkSession, hdfs: str) -> None:
    root = HadoopObjectStore(client_of(spark), f"{hdfs}/full", create=True)
    root._files.setQuota(root._root, 3, 2**62)
    root.put_if_absent("a", b"1")
    with pytest.raises(FolderNotWritable, match="quota"):
        root.put_if_absent("b", b"1")


def test_unknown_host_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(StorageError, match=r"nowhere\.invalid/x cannot be reached"):
        HadoopObjectStore(client_of(spark), "hdfs://nowhere.invalid/x", create=False)


def test_file_in_place_of_the_folder_stays(spark: SparkSession, hdfs: str) -> None:
    HadoopObjectStore(client_of(spark), f"{hdfs}/in-place", create=True).put("file", b"1")
    with pytest.raises(FolderNotOurs, match="was not touched"):
        HadoopObjectStore(client_of(spark), f"{hdfs}/in-place/file/", create=True)


@pytest.mark.parametrize("uri", ["nosuch://host/x/", "abfsx:/x"])
def test_scheme_unknown_to_hadoop_is_an_error(spark: SparkSession, uri: str) -> None:
    with pytest.raises(UnsupportedStore, match="no file system"):
        open_store(uri, create=True, others=hadoop_stores(spark))


def test_local_file_is_reached_the_same_way(spark: SparkSession, tmp_path: Path) -> None:
    store = HadoopObjectStore(client_of(spark), f"file://{tmp_path}", create=True)
    store.put("a/b", b"1")
    assert (tmp_path / "a/b").read_bytes() == b"1"
